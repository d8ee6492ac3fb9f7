"""The long log of the benches is one log, of which a pipeline takes each segment."""

from pathlib import Path

from controller.pipeline.fold import Fold
from controller.pipeline.stages import raw, ticks
from tests.bench.replay.cases import record
from tests.bench.replay.reading import lay_out


def test_a_long_log_is_read_whole(tmp_path: Path) -> None:
    long = tmp_path / "long"
    lay_out(record(20, 12, tmp_path / "short"), 40, 10, long)
    assert len(list(long.iterdir())) == 4
    engine = Fold(tmp_path / "tables")
    found = ticks(engine, raw(engine, [str(long)]), lambda share: None)
    assert found.left_out == ()
    # Each segment begins with the memory of the first one, so its first rates are not known.
    assert {part.folder for part in found.parts} == set(found.folders)
    assert sum(part.ticks for part in found.parts) > 4 * (10 - 4)

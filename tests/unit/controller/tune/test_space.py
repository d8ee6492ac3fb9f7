"""What is tried: grids, samples, and values that cannot be."""

from pathlib import Path
from typing import Any

import pytest

from controller.config import build
from controller.errors import TuneError
from controller.tune.space import SETS, ParameterSet, Space, parameter_sets, read_space
from migration import ConfigError

TODAY: dict[str, Any] = dict(build({}).keys)


def names(sets: list[ParameterSet]) -> list[str]:
    return [one.name for one in sets]


def space_of(folder: Path, text: str) -> Space:
    path = folder / "space.yaml"
    path.write_text(text)
    return read_space(path)


def test_a_small_space_is_a_grid_with_today_first() -> None:
    sets = parameter_sets(Space({"load.high": (0.85, 0.9), "cycle.secs": (5, 10)}), TODAY)
    assert names(sets) == [
        "as today (mode auto)",
        "cycle.secs=10",
        "load.high=0.9",
        "load.high=0.9, cycle.secs=10",
    ]
    assert sets[0].config == build(TODAY)
    assert (sets[3].config.limits.high_frac, sets[3].config.cycle_s) == (0.9, 10.0)


def test_the_default_space_has_every_value_by_itself_and_a_sample() -> None:
    space = Space()
    sets = parameter_sets(space, TODAY)
    assert len(sets) == SETS + 1
    assert names(sets) == names(parameter_sets(space, TODAY))
    assert len(set(names(sets))) == len(sets)
    alone = {one.changes[0] for one in sets if len(one.changes) == 1}
    # What only another policy reads comes with that policy alone.
    assert {(k, v) for k, of in space.values.items() if k != "load.low" for v in of} - alone <= {
        (key, TODAY[key]) for key in space.values
    } | {("load.high", 0.6)}
    assert "otd" in {one.config.policy for one in sets if "load.low" in dict(one.changes)}


def test_the_lower_limit_follows_where_nobody_reads_it() -> None:
    space = Space({"policy": ("gather", "otd"), "load.high": (0.5,)})
    assert names(parameter_sets(space, {**TODAY, "load.low": 0.6})) == [
        "as today (mode auto)",
        "load.high=0.5, load.low=0.5",
    ]


def test_absolute_thresholds_stay_absolute() -> None:
    narrowed = Space().narrowed({**TODAY, "asc.threshold.tps": 40.0})
    assert "asc.threshold" not in narrowed.values
    assert narrowed.values["asc.threshold.tps"] == (10.0, 20.0, 40.0, 80.0, 160.0)
    assert Space().narrowed(TODAY).values == Space().values


def test_a_key_that_counts_for_nothing_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"asc\.threshold: counts for nothing while"):
        parameter_sets(Space(), {**TODAY, "asc.threshold.tps": 40.0})


def test_a_file_narrows_the_space(tmp_path: Path) -> None:
    space = space_of(tmp_path, "sets: 5\nnstorm.load.high: [0.7, 0.8]\npolicy: gather\n")
    assert space == Space({"load.high": (0.7, 0.8), "policy": ("gather",)}, 5)
    assert space_of(tmp_path, '{"load.ewma": [0.5, 1]}').values == {"load.ewma": (0.5, 1)}
    large = Space({"load.high": (0.7, 0.8), "cycle.secs": (5, 10, 20)}, 4)
    assert len(parameter_sets(large, TODAY)) == 5


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("load.high: [0.8, 7]", r"load\.high: must be a number of at least 0.01 and at most 1"),
        ("load.low: [-1]", r"load\.low: must be a number of at least 0"),
        ("policy: [best]", "policy: must be one of"),
        ("max.moves.per.cycle: [1.5]", "max.moves.per.cycle: must be a whole number"),
        ("load.hihg: [0.8]", r"load\.hihg: cannot be tuned, did you mean load\.high"),
        ("journal.dir: [x]", "cannot be tuned, there are policy"),
        ("load.high: []", "has no value to try"),
        ("sets: 0\nload.high: 0.8", "sets: must be a whole number of at least 1, is 0"),
    ],
)
def test_what_cannot_be_is_named_with_its_file(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says) as raised:
        space_of(tmp_path, text)
    assert str(raised.value).startswith(str(tmp_path / "space.yaml"))
    assert "\n" not in str(raised.value)


def test_what_is_no_space_is_refused(tmp_path: Path) -> None:
    for text in ("", "[1, 2]", "a: [", "just words"):
        with pytest.raises(TuneError, match=r"space\.yaml"):
            space_of(tmp_path, text)
    with pytest.raises(TuneError, match="No such file"):
        read_space(tmp_path / "none.yaml")

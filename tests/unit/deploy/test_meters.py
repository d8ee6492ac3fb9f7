"""Storm's CSV meters are summed over daemons and over restarts of a daemon."""

from pathlib import Path

from deploy.lab.meters import read_meters

METER = "supervisor:num-launched"


def test_counts_of_daemons_and_of_their_lives_add_up(tmp_path: Path) -> None:
    for name, counts in (("a", [0, 3, 5, 0, 2]), ("b", [1])):
        (tmp_path / name).mkdir()
        rows = "".join(f"{i},{count},0.0\n" for i, count in enumerate(counts))
        (tmp_path / name / f"{METER}.csv").write_text("t,count,mean_rate\n" + rows)
    assert read_meters([tmp_path / "a", tmp_path / "b", tmp_path / "missing"]) == {METER: 8}


def test_half_a_line_and_gauges_do_not_count(tmp_path: Path) -> None:
    (tmp_path / f"{METER}.csv").write_text("t,count,mean_rate\n1,7,0.0\n2,7")
    (tmp_path / "gauge.csv").write_text("t,value\n1,7\n")
    assert read_meters([tmp_path]) == {METER: 7, "gauge": 0}

from pathlib import Path

from controller.policies import greedy
from controller.policies.gather import evaluate, route, search
from controller.policies.gather.anneal import anneal
from tests.bench.decide.ablation import PARTS, WHOLE, _patched, ablated


def row(**costs: float) -> dict[str, object]:
    ends = {
        name: {"cost": cost, "moves": 3, "rests": True, "cpu_s": 1.0}
        for name, cost in costs.items()
    }
    return {"kind": "small", "seed": 1, "best": 0.1, "start": 0.5, "ends": ends}


def test_a_loss_is_told_in_shares_of_the_best_cost() -> None:
    told = {
        str(one["left_out"]): one
        for one in ablated([row(nothing=0.1, search=0.15), row(nothing=0.12, search=0.12)])
    }
    assert told["search"]["mean_loss"] == "25.00%"
    assert (told["search"]["worse_than_whole"], told["search"]["better"]) == (1, 0)
    assert told["search"]["worst"] == "50.0%"
    assert told[WHOLE]["mean_loss"] == "0.00%"


def test_each_part_is_there_to_be_left_out_and_comes_back(tmp_path: Path) -> None:
    whole = evaluate._end_of_greedy, greedy.opening_pairs, route._exchange, route.CHAIN
    for part in PARTS:
        stack, _ = _patched(part, tmp_path)()
        with stack:
            assert (vars(search)["anneal"] is not anneal) == bool(part.constants)
            for (module, name), value in part.patches.items():
                assert getattr(module, name) is value
        now = evaluate._end_of_greedy, greedy.opening_pairs, route._exchange, route.CHAIN
        assert now == whole
        assert vars(search)["anneal"] is anneal

from controller.policies import greedy
from controller.policies.gather import anneal, evaluate, route
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


def whole() -> tuple[object, ...]:
    shares = anneal.STRAY, anneal.TOGETHER, anneal.BACK
    return evaluate._end_of_greedy, greedy._opening, route._exchange, route.CHAIN, shares


def test_each_part_is_there_to_be_left_out_and_comes_back() -> None:
    before = whole()
    for part in PARTS:
        stack, _ = _patched(part)()
        with stack:
            for (module, name), value in part.patches.items():
                assert getattr(module, name) is value
        assert whole() == before

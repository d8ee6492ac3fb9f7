"""The tuning of both schedulers of 002, apart from them: a configuration holds it."""

from dataclasses import dataclass

from migration.settings import DEFAULT


@dataclass(frozen=True, slots=True)
class Aniello:
    """The tuning of both schedulers of 002; the table of settings says what each number does.

    The paper prints no values. The defaults of `alpha` and `beta` are those of the authors' code
    (`alfa`, `epsilon`); its other defaults spread workers evenly over the nodes, which the paper's
    model does not ask for and which costs locality, so they are off here. Online, an `alpha` above
    0 wants a `gamma`: phase 1 knows no capacity, and what it puts together may fit no node.
    """

    alpha: float = DEFAULT["aniello.alpha"]
    beta: float = DEFAULT["aniello.beta"]
    gamma: float | None = DEFAULT["aniello.gamma"]  # not in the paper
    delta: float | None = DEFAULT["aniello.delta"]  # not in the paper
    # None: as in the paper, all nodes in turn offline and those that come out online.
    spread: float | None = DEFAULT["aniello.spread"]

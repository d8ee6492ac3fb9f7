"""The tuning of both schedulers of 002, apart from them: a configuration holds it."""

from dataclasses import dataclass

from migration.settings import DEFAULT


@dataclass(frozen=True, slots=True)
class Aniello:
    """The tuning of both schedulers of 002; `beta` concerns the offline one, `gamma` the online.

    Attributes
    ----------
    alpha : float
        From 0, as many executors in each worker, to 1, nearly all may go into one.
    beta : float
        Share of the components, upstream first, after which empty slots are used by force.
    gamma : float or None
        The most CPU of a worker, as a multiple of the mean; None: no limit. Not in the paper.
    delta : float or None
        From 0, as many workers on each node, to 1; None: only the slots limit them. Not in the
        paper.
    spread : float or None
        From 0, as few nodes as have room, to 1, as many as possible; None: as in the paper, all
        in turn offline and those that come out online. Called beta in the authors' code.

    Notes
    -----
    The paper prints no values. The defaults of `alpha` and `beta` are those of the authors' code
    (`alfa`, `epsilon`); its other defaults spread workers evenly over the nodes, which the paper's
    model does not ask for and which costs locality, so they are off here. Online, an `alpha` above
    0 wants a `gamma`: phase 1 knows no capacity, and what it puts together may fit no node.
    """

    alpha: float = DEFAULT["aniello.alpha"]
    beta: float = DEFAULT["aniello.beta"]
    gamma: float | None = DEFAULT["aniello.gamma"]
    delta: float | None = DEFAULT["aniello.delta"]
    spread: float | None = DEFAULT["aniello.spread"]

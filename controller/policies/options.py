"""All policies by name, and the options of single ones; `registry.py` loads them."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from controller.core.limits import JITTER_TIMES
from controller.policies.profiles import Profiles
from migration.settings import setting

# With 10, one of ten keyed starts ended 5.2 % above the best known placement; with 16 none by 4 %.
STILL_EFFORT = 16


@dataclass(frozen=True, slots=True)
class TargetOptions:
    """The options of `gather` for targets; limits are apart."""

    gain_frac: float = setting("target.gain")  # δ, of what today's placement costs
    move_price_frac: float = setting("target.move.price")  # λ times E, of the same
    fill_frac: float = setting("target.fill")  # of the upper threshold
    # Whether the placements of a way may cost any more than today's, on average. If not, they may
    # cost more by at most what the end of the way gains. While loads jitter a way may
    # end anywhere: a worker gets hot, or an executor no longer fits.
    detours: bool = False
    effort: int = 1  # how many times as long annealing may take as it has to

    @property
    def on_still_loads(self) -> "TargetOptions":
        """The options where loads stand still, as in a file.

        Workers are filled up to the threshold, and ways may cost more than to stay. No noise makes
        a placement look better than it is, so the best is worth a longer search.
        """
        return replace(self, fill_frac=1.0, detours=True, effort=STILL_EFFORT)

    @property
    def on_jittering_loads(self) -> "TargetOptions":
        """The options where loads jitter: twice the gain and price, for some finds are noise."""
        times = JITTER_TIMES
        gain, price = times * self.gain_frac, times * self.move_price_frac
        return replace(self, gain_frac=gain, move_price_frac=price)


@dataclass(frozen=True, slots=True)
class Aniello:
    """The tuning of both schedulers of 002; the table of settings describes each number.

    The paper prints no values. The defaults of `alpha` and `beta` are those of the authors' code
    (`alfa`, `epsilon`). Its other defaults spread workers evenly over the nodes. The paper's model
    does not ask for that, and it costs locality, so they are off here. Online, an `alpha` above 0
    wants a `gamma`: phase 1 knows no capacity, and what it puts together may fit no node.
    """

    alpha: float = setting("aniello.alpha")
    beta: float = setting("aniello.beta")
    gamma: float | None = setting("aniello.gamma")  # not in the paper


@dataclass(frozen=True, slots=True)
class Options:
    """The options of single policies, in addition to the limits that all of them share."""

    aniello: Aniello = field(default_factory=Aniello)
    target: TargetOptions = field(default_factory=TargetOptions)
    profiles: Profiles = field(default_factory=Profiles)  # of the file that is decided about


# Loaded when asked for: a controller that never decides by a paper's scheduler starts without it.
PAPERS: Mapping[str, str] = MappingProxyType(
    {
        "even": "even:even",
        "lf": "even:lf",
        "dsm": "model_driven.policies:dsm",
        "rsm": "model_driven.policies:rsm",
        "sam": "model_driven.policies:sam",
        "heterogeneity": "heterogeneity:heterogeneity",
        "aniello-offline": "aniello:aniello_offline",
        "aniello-online": "aniello:aniello_online",
    }
)
# Those that plan from profiles.
PLANNING = frozenset({"rsm", "sam", "heterogeneity", "aniello-online"})
NAMES = ("gather", "otd", *PAPERS)

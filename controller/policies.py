"""All policies by name, each with its own options; the others take them from here."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType

from controller.baselines.aniello.offline import Aniello, aniello_offline
from controller.baselines.aniello.online import aniello_online
from controller.baselines.even import even
from controller.baselines.heterogeneity.policy import heterogeneity
from controller.baselines.model_driven.policies import dsm, rsm, sam
from controller.baselines.oracle.exhaustive import exhaustive
from controller.baselines.pipelines import lf
from controller.core.decide import Policy, otd, safe
from controller.core.target.problem import TargetOptions
from controller.targeting.policy import Targeting
from controller.targeting.search import Search, at_once


@dataclass(frozen=True, slots=True)
class Options:
    """What single policies are told besides the limits that all of them share."""

    aniello: Aniello = field(default_factory=Aniello)
    target: TargetOptions = field(default_factory=TargetOptions)


_ALWAYS: Mapping[str, Policy] = MappingProxyType(
    {
        "otd": otd,
        "safe": safe,
        "even": even,
        "lf": lf,
        "dsm": dsm,
        "rsm": rsm,
        "sam": sam,
        "heterogeneity": heterogeneity,
        "exhaustive": exhaustive,
    }
)
_BOUND: Mapping[str, Callable[[Options], Policy]] = MappingProxyType(
    {
        "aniello-offline": lambda options: partial(aniello_offline, options=options.aniello),
        "aniello-online": lambda options: partial(aniello_online, options=options.aniello),
    }
)
NAMES = (*_ALWAYS, *_BOUND, "target")


def policy(name: str, options: Options, search: Search = at_once) -> Policy:
    """Give a policy.

    Parameters
    ----------
    name : str
        One of `NAMES`.
    options : Options
        Of which it takes what concerns it.
    search : Search
        How `target` searches.

    Returns
    -------
    Policy
        Ready to decide; `target` remembers what is under way, so each run needs one of its own.
    """
    if name == "target":
        return Targeting(options.target, search)
    return _ALWAYS[name] if name in _ALWAYS else _BOUND[name](options)

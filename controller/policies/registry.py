"""All policies by name, each with its own options; the others take them from here."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from types import MappingProxyType
from typing import Any

from controller.core.decision import Rule
from controller.core.policy import Policy, Stateless
from controller.errors import PolicyError
from controller.policies.gather.policy import Gather
from controller.policies.gather.problem import TargetOptions
from controller.policies.otd import otd
from controller.policies.profiles import Profiles
from migration.extras import pip_install
from migration.settings import setting


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
_PAPERS: Mapping[str, str] = MappingProxyType(
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
_PLANNING = frozenset({"rsm", "sam", "heterogeneity", "aniello-online"})
NAMES = ("gather", "otd", *_PAPERS)


def policy(name: str, options: Options) -> Policy[Any]:
    """Give one of the `NAMES`, with what concerns it of the options.

    Raises PolicyError for a scheduler of a paper where the packages of the extra are missing.
    """
    if name == "gather":
        return Gather(options.target)
    if name == "otd":
        return Stateless(otd)
    module, _, function = _PAPERS[name].partition(":")
    try:
        found: Any = getattr(import_module(f"controller.policies.{module}"), function)
    except ModuleNotFoundError as error:
        raise PolicyError(
            f"policy {name} needs {error.name}; type in nstorm's folder: {pip_install('papers')}"
        ) from None
    if isinstance(found, Policy):
        return found
    taken: dict[str, Any] = {"options": options.aniello} if name.startswith("aniello") else {}
    if name in _PLANNING:
        taken["profiles"] = options.profiles
    rule: Rule = partial(found, **taken) if taken else found
    return Stateless(rule)

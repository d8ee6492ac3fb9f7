"""All policies by name, each with its own options; the others take them from here."""

from functools import partial
from importlib import import_module
from typing import Any

from controller.core.policy import Policy, Rule, Stateless
from controller.errors import PolicyError
from controller.policies.gather.policy import Gather
from controller.policies.options import PAPERS, PLANNING, Options
from controller.policies.otd import otd
from migration.extras import pip_install


def policy(name: str, options: Options) -> Policy[Any]:
    """Give one of the `NAMES`, with what concerns it of the options.

    Raises PolicyError for a scheduler of a paper where the packages of the extra are missing.
    """
    if name == "gather":
        return Gather(options.target)
    if name == "otd":
        return Stateless(otd)
    module, _, function = PAPERS[name].partition(":")
    try:
        found: Any = getattr(import_module(f"controller.policies.{module}"), function)
    except ModuleNotFoundError as error:
        raise PolicyError(
            f"policy {name} needs {error.name}; type in nstorm's folder: {pip_install('papers')}"
        ) from None
    if isinstance(found, Policy):
        return found
    taken: dict[str, Any] = {"options": options.aniello} if name.startswith("aniello") else {}
    if name in PLANNING:
        taken["profiles"] = options.profiles
    rule: Rule = partial(found, **taken) if taken else found
    return Stateless(rule)

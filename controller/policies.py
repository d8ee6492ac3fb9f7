"""All policies by name, each with its own options; the others take them from here."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from controller.core.decide import Policy, otd, safe


@dataclass(frozen=True, slots=True)
class Options:
    """What single policies are told besides the limits that all of them share."""


_ALWAYS: Mapping[str, Policy] = MappingProxyType({"otd": otd, "safe": safe})
NAMES = tuple(_ALWAYS)


def policy(name: str, options: Options) -> Policy:
    """Give a policy.

    Parameters
    ----------
    name : str
        One of `NAMES`.
    options : Options
        Of which it takes what concerns it.

    Returns
    -------
    Policy
        Ready to decide.
    """
    return _ALWAYS[name]

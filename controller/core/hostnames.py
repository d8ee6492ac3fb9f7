"""Hosts, as people know them, in texts that have supervisor ids."""

import re
from collections.abc import Mapping

# An id ends in the node's address, which may be one of IPv6.
_BEFORE_PORT = re.compile(r"[\w.:-]*[\w.-](?=:\d)")


def shown(text: str, hosts: Mapping[str, str]) -> str:
    """Write hosts for the ids of supervisors before a port, or for an id alone, where known."""

    def host(found: re.Match[str]) -> str:
        before, colon, last = found[0].rpartition(":")
        return hosts.get(found[0]) or f"{before}{colon}{hosts.get(last, last)}"

    return hosts.get(text) or _BEFORE_PORT.sub(host, text)

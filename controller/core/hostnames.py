"""Hosts, as people know them, in texts that have supervisor ids."""

import re
from collections.abc import Mapping

# An id ends in the node's address, which may be one of IPv6.
_BEFORE_PORT = re.compile(r"[\w.:-]*[\w.-](?=:\d)")
# As Storm makes them, which no other word looks like: a UUID, and where the supervisor is.
_ID = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}-[\w.:-]*\w")


def shown(text: str, hosts: Mapping[str, str]) -> str:
    """Write hosts for the ids of supervisors, where known: before a port, alone, or in a text."""

    def host(found: re.Match[str]) -> str:
        before, colon, last = found[0].rpartition(":")
        return hosts.get(found[0]) or f"{before}{colon}{hosts.get(last, last)}"

    found = hosts.get(text) or _BEFORE_PORT.sub(host, text)
    return _ID.sub(lambda one: hosts.get(one[0], one[0]), found)

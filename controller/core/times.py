"""Times as people read and type them."""

from datetime import UTC, datetime

MINUTE_S, HOUR_S, DAY_S = 60.0, 3600.0, 86_400.0


def utc(unix_s: float | None) -> str:
    """Write a time for people, and nothing for none; one that no calendar has as its number."""
    try:
        return "" if not unix_s else f"{datetime.fromtimestamp(unix_s, UTC):%Y-%m-%d %H:%M:%SZ}"
    except (ValueError, OverflowError, OSError):
        return f"{unix_s:g}"


def moment(text: str) -> datetime:
    """Read a time in ISO 8601; it is UTC if it has no zone.

    Raises ValueError for any other text.
    """
    named = datetime.fromisoformat(text)
    return named if named.tzinfo else named.replace(tzinfo=UTC)

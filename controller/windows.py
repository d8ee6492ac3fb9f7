"""Change windows: the minutes in which a decision may begin moves."""

from datetime import datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from migration import ConfigError

MINUTE_S = 60


def _opens(window: str, time_s: float) -> datetime:
    """Return the first minute from this one on in which a window is open."""
    *fields, zone = window.split()
    if len(fields) != 5:
        raise CronSimError("it has to be five fields of cron and a zone, such as UTC")
    now = datetime.fromtimestamp(time_s // MINUTE_S * MINUTE_S, ZoneInfo(zone))
    # In the hour that comes twice, a minute before is one of the first time.
    minutes = CronSim(" ".join(fields), now - timedelta(minutes=1))
    return next(at for at in minutes if at.timestamp() >= now.timestamp())


def checked(windows: list[str]) -> tuple[str, ...]:
    """Refuse, by a `ConfigError`, what is no window or never opens."""
    for window in windows:
        try:
            _opens(window, 0.0)
        except (CronSimError, OSError, ValueError, LookupError) as error:
            raise ConfigError(f"nstorm.windows: {window!r}: {error}") from None
        except StopIteration:
            raise ConfigError(f"nstorm.windows: {window!r} never opens") from None
    return tuple(windows)


def closed(windows: tuple[str, ...], time_s: float) -> str | None:
    """Return when the next window opens; None while one is open, or if there is none."""
    return _closed(windows, time_s // MINUTE_S * MINUTE_S) if windows else None


@lru_cache(maxsize=16)
def _closed(windows: tuple[str, ...], minute_s: float) -> str | None:
    opens = min(_opens(window, minute_s) for window in windows)
    if opens.timestamp() <= minute_s:
        return None
    return f"outside the change windows, the next opens {opens:%Y-%m-%d %H:%M %Z}"

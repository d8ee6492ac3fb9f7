"""Where a daemon serves its metrics, and to whom."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A host and port; TLS if there is a certificate, a bearer token if there is a file of it."""

    host: str
    port: int
    # PEM files; the certificate may be followed by its chain, or by its key.
    certificate: Path | None = None
    key: Path | None = None
    token: Path | None = None

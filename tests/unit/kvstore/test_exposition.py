"""The metrics of a daemon: served to who asks properly, and no client can disturb the daemon."""

import socket
import ssl
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector
from structlog.testing import capture_logs

from kvstore import exposition
from kvstore.endpoint import Endpoint
from kvstore.exposition import exposed
from kvstore.pulse import HANGS_AFTER_S, Pulse
from tests.scraping import free_port


class One(Collector):
    """One metric, or a fault."""

    def __init__(self) -> None:
        self.fault: Exception | None = None

    def collect(self) -> Iterable[Metric]:
        if self.fault is not None:
            raise self.fault
        return [GaugeMetricFamily("nstorm_one", "One.", value=1.5)]


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def served() -> Iterator[tuple[int, One, Pulse, Clock]]:
    port, told, clock = free_port(), One(), Clock()
    pulse = Pulse({}, clock)
    with exposed(Endpoint("localhost", port), "agent", told, pulse):
        yield port, told, pulse, clock


def get(port: int, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://localhost:{port}{path}", timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_it_serves_what_prometheus_reads(served: tuple[int, One, Pulse, Clock]) -> None:
    port, _, pulse, _ = served
    pulse.beat()
    status, text = get(port, "/metrics")
    assert status == 200
    found = {family.name: family.samples[0] for family in text_string_to_metric_families(text)}
    assert found["nstorm_one"].value == 1.5
    assert found["nstorm_build_info"].labels["role"] == "agent"
    assert found["nstorm_ready"].value == 1
    assert found["nstorm_zookeeper_last_seen_timestamp_seconds"].value == pytest.approx(
        time.time(), abs=60
    )
    assert found["process_resident_memory_bytes"].value > 1e6


@pytest.mark.parametrize("host", ["::1", "::"])
def test_it_serves_at_an_address_of_ipv6(host: str) -> None:
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6) as probe:
            port: int = probe.getsockname()[1]
    except OSError:
        pytest.skip("a machine without IPv6")
    asked = f"http://[::1]:{port}/healthz"
    with (
        exposed(Endpoint(host, port), "agent", One(), Pulse({})),
        urllib.request.urlopen(asked, timeout=30) as answer,
    ):
        assert answer.read() == b"ok\n"


def test_health_and_readiness_are_told_apart(served: tuple[int, One, Pulse, Clock]) -> None:
    port, _, pulse, clock = served
    pulse.beat("ZooKeeper")
    assert get(port, "/healthz") == (200, "ok\n")
    assert get(port, "/readyz") == (503, "waits for ZooKeeper\n")
    pulse.beat()
    assert get(port, "/readyz") == (200, "ok\n")
    clock.now_s += HANGS_AFTER_S + 1
    assert get(port, "/healthz") == (503, "the loop has not run for 61 s\n")
    assert get(port, "/readyz")[0] == 503
    assert get(port, "/else") == (404, "there are /metrics, /healthz and /readyz\n")


def test_a_fault_of_a_metric_is_an_answer(
    served: tuple[int, One, Pulse, Clock], capsys: pytest.CaptureFixture[str]
) -> None:
    port, told, _, _ = served
    told.fault = ZeroDivisionError("what")
    assert get(port, "/metrics")[0] == 500
    assert "ZeroDivisionError: what" in capsys.readouterr().err
    told.fault = None
    assert get(port, "/metrics")[0] == 200


def test_silent_and_rude_clients_only_wait_in_line(
    served: tuple[int, One, Pulse, Clock], monkeypatch: pytest.MonkeyPatch
) -> None:
    port, _, _, _ = served
    # Long enough for an honest client on a busy machine.
    monkeypatch.setattr(exposition, "_CLIENT_LIMIT_S", 0.5)
    with ExitStack() as silent:
        for _ in range(3):
            silent.enter_context(socket.create_connection(("localhost", port)))
        for noise in (b"\0garbage\r\n\r\n", b"GET /metrics", b"POST / HTTP/1.0\r\n\r\n", b""):
            with socket.create_connection(("localhost", port)) as rude:
                rude.sendall(noise)
        assert get(port, "/metrics")[0] == 200
        assert threading.active_count() < 10


def test_a_port_in_use_is_taken_once_it_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exposition, "_LISTEN_AGAIN_S", 0.05)
    port = free_port()
    with capture_logs() as logs:
        with (
            exposed(Endpoint("localhost", port), "controller", One(), Pulse({})) as _,
            exposed(Endpoint("localhost", port), "controller", One(), Pulse({})),
        ):
            assert get(port, "/healthz")[0] == 200
            time.sleep(0.2)
        with exposed(Endpoint("localhost", port), "controller", One(), Pulse({})):
            assert get(port, "/healthz")[0] == 200
    assert [line["event"] for line in logs] == ["metrics_not_served"]
    with capture_logs() as logs, ExitStack() as second:
        with exposed(Endpoint("localhost", port), "controller", One(), Pulse({})):
            second.enter_context(
                exposed(Endpoint("localhost", port), "controller", One(), Pulse({}))
            )
        until_s = time.monotonic() + 30
        while not any(line["event"] == "metrics_served" for line in logs):
            assert time.monotonic() < until_s, "the second never listened"
            time.sleep(0.05)
        assert get(port, "/healthz")[0] == 200


def test_a_client_that_never_ends_does_not_hold_up_the_end_of_the_daemon(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(exposition, "_CLIENT_LIMIT_S", 0.5)
    port, gone = free_port(), threading.Event()

    def trickle(client: socket.socket) -> None:
        """Send a byte each 50 ms: none of its reads lasts long."""
        with suppress(OSError):
            for _ in range(400):
                client.sendall(b"x")
                if gone.wait(0.05):
                    break

    with socket.socket() as client:
        with exposed(Endpoint("localhost", port), "agent", One(), Pulse({})):
            client.connect(("localhost", port))
            thread = threading.Thread(target=trickle, args=(client,))
            thread.start()
            time.sleep(0.2)  # it is being served
            began_s = time.monotonic()
        assert time.monotonic() - began_s < 10
        gone.set()
        thread.join()


@pytest.mark.parametrize("host", ["localhost", "no.such.host.invalid"])
def test_where_it_cannot_listen_it_says_so_once_and_goes_on(host: str) -> None:
    with socket.create_server(("localhost", 0)) as taken, capture_logs() as logs:
        port = taken.getsockname()[1]
        with exposed(Endpoint(host, port), "agent", One(), Pulse({})):
            pass
    (entry,) = logs
    assert (entry["event"], entry["host"], entry["port"]) == ("metrics_not_served", host, port)
    assert entry["reason"].startswith("cannot listen: ")


def test_a_port_is_free_again_at_once() -> None:
    port = free_port()
    for _ in range(2):
        with exposed(Endpoint("localhost", port), "agent", One(), Pulse({})):
            assert get(port, "/healthz")[0] == 200


def test_who_lacks_the_token_is_refused(tmp_path: Path) -> None:
    token, port = tmp_path / "token", free_port()
    token.write_text("right\n")

    def ask(header: str | None, path: str = "/metrics") -> tuple[int, str]:
        headers = {} if header is None else {"Authorization": header}
        request = urllib.request.Request(f"http://localhost:{port}{path}", headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    with exposed(Endpoint("localhost", port, token=token), "agent", One(), Pulse({})):
        for header in (None, "Bearer wrong", "Bearer ", "right", "Bearer right\xe4"):
            for path in ("/metrics", "/healthz", "/readyz", "/else"):
                assert ask(header, path) == (401, "this needs Authorization: Bearer TOKEN\n")
        status, text = ask("Bearer right")
        assert (status, "nstorm_one 1.5" in text) == (200, True)
        token.write_text("next")  # without a restart
        assert (ask("Bearer right")[0], ask("Bearer next")[0]) == (401, 200)
        token.write_text("\n")
        assert ask("Bearer ") == (503, "nstorm.metrics.token names an empty file\n")
        token.unlink()
        reason = "nstorm.metrics.token cannot be read: No such file or directory\n"
        assert ask("Bearer next") == (503, reason)


def made_certificate(folder: Path) -> tuple[Path, Path]:
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    made = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2"
    named = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    files = ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*made.split(), *named, *files], check=True, capture_output=True)
    return certificate, key


def test_it_serves_by_tls_and_silent_clients_only_wait_in_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exposition, "_CLIENT_LIMIT_S", 0.5)
    certificate, key = made_certificate(tmp_path)
    trusted, port = ssl.create_default_context(cafile=str(certificate)), free_port()
    with exposed(Endpoint("localhost", port, certificate, key), "agent", One(), Pulse({})):
        with ExitStack() as silent:
            silent.enter_context(socket.create_connection(("localhost", port)))
            for noise in (b"GET /metrics HTTP/1.0\r\n\r\n", b"\x16\x03\x01", b""):
                with socket.create_connection(("localhost", port)) as rude:
                    rude.sendall(noise)
            url = f"https://localhost:{port}/metrics"
            with urllib.request.urlopen(url, timeout=30, context=trusted) as answer:
                assert "nstorm_one 1.5" in answer.read().decode()
        with pytest.raises(urllib.error.URLError, match="CERTIFICATE_VERIFY_FAILED"):
            urllib.request.urlopen(url, timeout=30, context=ssl.create_default_context())


def test_a_certificate_that_cannot_be_used_is_said_and_the_daemon_goes_on(tmp_path: Path) -> None:
    certificate, key = made_certificate(tmp_path)
    for wrong in (
        Endpoint("localhost", free_port(), tmp_path / "gone.pem"),
        Endpoint("localhost", free_port(), key, certificate),
    ):
        with capture_logs() as logs, exposed(wrong, "agent", One(), Pulse({})):
            pass
        (entry,) = logs
        assert entry["event"] == "metrics_not_served"
        assert str(wrong.certificate) in entry["reason"]

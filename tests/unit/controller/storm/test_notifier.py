"""Notices on their way: to a real HTTP server, and to a real command."""

import email
import email.policy
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from controller.config import build
from controller.core.receivers import NoticeKind, Receiver
from controller.storm import notifier
from controller.storm.noticing import Notice
from controller.storm.notifier import MOST_IN_MESSAGE, MOST_WAITING, NoticeError, Outbox, send
from migration import ConfigError
from tests.receiving import receiving

CLUSTER = "zk1:2181/storm"
SECRET = "T0ken-of-nobody"


def notice(text: str = "7-7 has moved", kind: NoticeKind = NoticeKind.MOVE) -> Notice:
    return Notice(kind, "wc", text, time.time())


def secret(folder: Path, text: str, name: str = "secret") -> str:
    path = folder / name
    path.write_text(text, "utf-8")
    return str(path)


@contextmanager
def outbox(receiver: Receiver) -> Iterator[Outbox]:
    made = Outbox(receiver, CLUSTER, gather_s=0.05)
    try:
        yield made
    finally:
        made.end()
        made.join(time.monotonic() + 60)


def until(condition: Callable[[], Any]) -> None:
    for _ in range(3000):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("it has not come within 30 s")


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({}, "nstorm.notice[0]: must have one of webhook, slack and mail"),
        ({"webhook": "f", "slack": "g"}, "nstorm.notice[0]: must have one of webhook, slack"),
        ({"slack": "f", "token": "g"}, "nstorm.notice[0].token: must be there only with webhook"),
        ({"webhook": ""}, "nstorm.notice[0].webhook: must be text that is not empty"),
        ({"mail": "sendmail"}, "nstorm.notice[0].mail: must be a list that is not empty"),
        ({"mail": []}, "nstorm.notice[0].mail: must be a list that is not empty"),
        ({"slack": "f", "kinds": ["moves"]}, "nstorm.notice[0].kinds[0]: must be one of move, run"),
        ({"slack": "f", "kinds": []}, "nstorm.notice[0].kinds: must be a list that is not empty"),
        ({"slak": "f"}, "nstorm.notice[0].slak: unknown key, did you mean slack?"),
    ],
)
def test_what_cannot_be_is_refused_by_key_and_value(row: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError) as refused:
        build({"notice": [row]})
    assert str(refused.value).startswith(problem)


def test_the_journal_gives_the_same_receivers_and_no_secret(tmp_path: Path) -> None:
    file = secret(tmp_path, SECRET)
    config = build({"notice": [{"webhook": file, "token": file, "kinds": ["guard"]}]})
    assert build(json.loads(json.dumps(config.keys_in_force))).receivers == config.receivers
    assert SECRET not in repr(config)
    assert config.receivers == (Receiver(webhook=file, token=file, kinds=(NoticeKind.GUARD,)),)


def test_a_webhook_gets_json_and_the_token(tmp_path: Path) -> None:
    with receiving() as server:
        where = secret(tmp_path, f"{server.url}/hook?x=1\r\nmore", "url")
        receiver = Receiver(webhook=where, token=secret(tmp_path, f"{SECRET}\n"))
        sent = notice("Zähler <8-8> & \\x1b")
        send(receiver, CLUSTER, [sent], left_out=3)
    (body,), (headers,) = server.bodies, server.headers
    assert json.loads(body) == {
        "cluster": CLUSTER,
        "notices": [
            {"kind": "move", "topology": "wc", "text": sent.text, "time_s": sent.time_s},
        ],
        "left_out": 3,
    }
    assert headers["Authorization"] == f"Bearer {SECRET}"
    assert headers["Content-Type"] == "application/json"
    assert server.paths == ["/hook?x=1"]


def test_slack_gets_text_in_which_no_name_calls_anybody(tmp_path: Path) -> None:
    with receiving() as server:
        receiver = Receiver(slack=secret(tmp_path, server.url))
        send(receiver, CLUSTER, [notice("<!channel> & *b*"), notice("two")], left_out=1)
    message = json.loads(server.bodies[0])
    assert message["mrkdwn"] is False
    first, second, third, last = message["text"].split("\n")
    assert first == "nstorm at zk1:2181/storm:"
    assert second.endswith("Z wc move: &lt;!channel&gt; &amp; *b*")
    assert third.endswith("Z wc move: two")
    assert last == "1 older notices were left out"


def test_mail_goes_through_a_command(tmp_path: Path) -> None:
    code = "import sys; open(sys.argv[1], 'wb').write(sys.stdin.buffer.read())"
    command = (sys.executable, "-c", code, str(tmp_path / "mail"))
    sent = [notice("Zähler läuft"), notice("x", NoticeKind.GUARD), notice("y", NoticeKind.GUARD)]
    send(Receiver(mail=command), CLUSTER, sent)
    message: Any = email.message_from_bytes(
        (tmp_path / "mail").read_bytes(), policy=email.policy.default
    )
    assert message["Subject"] == "nstorm at zk1:2181/storm: move, guard"
    assert message["Date"] and message["Auto-Submitted"] == "auto-generated"
    assert "wc move: Zähler läuft\n" in message.get_content()


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        (("/nowhere/sendmail",), "/nowhere/sendmail: cannot be run: No such file or directory"),
        (("false",), "false: ended with exit code 1"),
        (("sh", "-c", "exec <&-; exit 3"), "sh: ended with exit code 3"),
    ],
)
def test_a_command_that_fails_has_a_reason(command: tuple[str, ...], problem: str) -> None:
    with pytest.raises(NoticeError) as refused:
        send(Receiver(mail=command), CLUSTER, [notice("x" * 500)] * MOST_IN_MESSAGE)
    assert str(refused.value) == problem


def test_a_command_that_hangs_is_ended_with_its_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notifier, "COMMAND_LIMIT_S", 1.0)
    pid = tmp_path / "pid"
    command = ("sh", "-c", f"sleep 600 & echo $! > {pid}; wait")
    with pytest.raises(NoticeError, match="sh: took more than 1 s"):
        send(Receiver(mail=command), CLUSTER, [notice()])

    def is_gone() -> bool:
        try:
            os.kill(int(pid.read_text()), 0)
        except ProcessLookupError:
            return True
        # Nobody may be there to reap it.
        return "\nState:\tZ" in Path(f"/proc/{pid.read_text().strip()}/status").read_text()

    until(is_gone)


@pytest.mark.parametrize("code", [302, 307, 400, 401, 500])
def test_an_answer_that_is_none_of_success_is_a_problem_and_leads_nowhere(
    tmp_path: Path, code: int
) -> None:
    with receiving(code) as server:
        where = secret(tmp_path, f"{server.url}/{SECRET}", "url")
        receiver = Receiver(webhook=where, token=secret(tmp_path, SECRET))
        with pytest.raises(NoticeError) as refused:
            send(receiver, CLUSTER, [notice()])
    assert str(refused.value) == f"{where}: the receiver answers {code}"
    assert server.paths == [f"/{SECRET}"], "the token goes to no other address"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (None, "cannot be read: No such file or directory"),
        ("", "the first line must be ASCII without spaces"),
        (f"http://h/ {SECRET}", "the first line must be ASCII without spaces"),
        (f"http://h/\x00{SECRET}", "the first line must be ASCII without spaces"),
        (f"http://h/{SECRET}ä", "the first line must be ASCII without spaces"),
        (f"file:///{SECRET}", "the first line must be http(s)://HOST[:PORT][/PATH]"),
        (f"http:///{SECRET}", "the first line must be http(s)://HOST[:PORT][/PATH]"),
        (f"http://h:99999/{SECRET}", "the first line must be http(s)://HOST[:PORT][/PATH]"),
        (f"http://[h/{SECRET}", "the first line must be http(s)://HOST[:PORT][/PATH]"),
        (f"http://u:{SECRET}@h/", "the first line must be http(s)://HOST[:PORT][/PATH]"),
        (f"http://127.0.0.1:1/{SECRET}", "Connection refused"),
    ],
)
def test_an_address_that_cannot_be_used_is_a_problem_without_a_secret(
    tmp_path: Path, text: str | None, problem: str
) -> None:
    where = str(tmp_path / "url") if text is None else secret(tmp_path, text, "url")
    with pytest.raises(NoticeError) as refused:
        send(Receiver(webhook=where), CLUSTER, [notice()])
    assert str(refused.value) == f"{where}: {problem}"


def test_a_receiver_that_does_not_answer_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notifier, "LIMIT_S", 0.2)
    with receiving(silent=threading.Event()) as server:
        where = secret(tmp_path, server.url)
        with pytest.raises(NoticeError) as refused:
            send(Receiver(webhook=where), CLUSTER, [notice()])
    assert str(refused.value) == f"{where}: the receiver has not answered within 0.2 s"


def texts(body: bytes) -> list[str]:
    return [one["text"] for one in json.loads(body)["notices"]]


def test_notices_of_the_wanted_kinds_are_gathered_into_one_message(tmp_path: Path) -> None:
    with receiving() as server:
        where = secret(tmp_path, server.url)
        with outbox(Receiver(webhook=where, kinds=(NoticeKind.RUN, NoticeKind.GUARD))) as box:
            box.add([notice("a", NoticeKind.RUN), notice("b"), notice("c", NoticeKind.GUARD)])
            assert server.came.acquire(timeout=30)
    assert [texts(body) for body in server.bodies] == [["a", "c"]]


def test_a_message_has_no_more_than_so_much_and_the_rest_follows(tmp_path: Path) -> None:
    with receiving() as server, outbox(Receiver(webhook=secret(tmp_path, server.url))) as box:
        box.add([notice(str(i)) for i in range(MOST_IN_MESSAGE + 1)])
        assert server.came.acquire(timeout=30) and server.came.acquire(timeout=30)
    sent = [texts(body) for body in server.bodies]
    assert [len(one) for one in sent] == [MOST_IN_MESSAGE, 1]
    assert [*chain(*sent)] == [str(i) for i in range(MOST_IN_MESSAGE + 1)]


def test_a_receiver_that_fails_gets_all_later_and_the_log_has_it_once(tmp_path: Path) -> None:
    with capture_logs() as logs, receiving(500, 500, 200) as server:
        where = secret(tmp_path, server.url)
        with outbox(Receiver(webhook=where)) as box:
            box.add([notice("a")])
            assert server.came.acquire(timeout=30)
            box.add([notice("b")])
            until(lambda: len(logs) == 2)
    assert server.bodies and texts(server.bodies[-1]) == ["a", "b"]
    assert [(one["event"], one["to"]) for one in logs] == [
        ("notices_not_sent", where),
        ("notices_sent_again", where),
    ]
    assert logs[0]["reason"] == f"{where}: the receiver answers 500"


@pytest.mark.parametrize(
    ("receiver", "problem"),
    [
        (Receiver(webhook="/nowhere/url"), "/nowhere/url: cannot be read: No such file"),
        (Receiver(mail=("/nowhere/sendmail",)), "/nowhere/sendmail: is no command that may"),
    ],
)
def test_what_a_message_will_lack_is_logged_at_the_start(receiver: Receiver, problem: str) -> None:
    with capture_logs() as logs, outbox(receiver):
        until(lambda: logs)
        time.sleep(0.5)
    (one,) = logs
    assert one["event"] == "notices_not_sent" and one["reason"].startswith(problem)


def test_a_receiver_that_hangs_delays_nobody_and_what_is_left_out_is_counted(
    tmp_path: Path,
) -> None:
    goes_on = threading.Event()
    with receiving(silent=goes_on) as slow, receiving() as other:
        slowly = Receiver(webhook=secret(tmp_path, slow.url, "slow"))
        quickly = Receiver(webhook=secret(tmp_path, other.url, "other"))
        with outbox(slowly) as box, outbox(quickly) as beside:
            box.add([notice("first")])
            assert slow.came.acquire(timeout=30)
            took_s = []
            for i in range(2 * MOST_WAITING):
                began_s = time.perf_counter()
                box.add([notice(str(i))])
                took_s.append(time.perf_counter() - began_s)
            beside.add([notice("for the other")])
            assert other.came.acquire(timeout=30), "while the first one hangs"
            assert sorted(took_s)[MOST_WAITING] < 0.01
            goes_on.set()
            assert slow.came.acquire(timeout=30)
    bodies = [json.loads(body) for body in slow.bodies]
    assert bodies[1]["left_out"] == MOST_WAITING
    assert texts(slow.bodies[1])[0] == str(MOST_WAITING)
    assert sum(one["left_out"] for one in bodies[2:]) == 0


def test_what_is_old_is_counted_and_no_news(tmp_path: Path) -> None:
    old = Notice(NoticeKind.MOVE, "wc", "old", time.time() - notifier.OLD_S - 1)
    with receiving() as server, outbox(Receiver(webhook=secret(tmp_path, server.url))) as box:
        box.add([old, notice("new")])
        assert server.came.acquire(timeout=30)
    assert texts(server.bodies[0]) == ["new"]
    assert json.loads(server.bodies[0])["left_out"] == 1


def test_the_end_sends_what_is_left_and_waits_for_nobody_long(tmp_path: Path) -> None:
    with receiving() as server, receiving(silent=threading.Event()) as slow:
        receivers = [
            Receiver(webhook=secret(tmp_path, url, url[-5:])) for url in (server.url, slow.url)
        ]
        made = notifier.Notifier(receivers, CLUSTER)
        made.add([notice("last")])
        began_s = time.monotonic()
        made.close()
        took_s = time.monotonic() - began_s
        assert server.came.acquire(timeout=30)
    assert texts(server.bodies[0]) == ["last"]
    assert notifier.CLOSE_S - 0.1 < took_s < notifier.CLOSE_S + 5


def test_a_surprise_is_logged_without_its_text_and_the_thread_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = send, []

    def surprising(*given: Any) -> None:
        calls.append(given)
        if len(calls) == 1:
            raise RuntimeError(SECRET)
        real(*given)

    monkeypatch.setattr(notifier, "send", surprising)
    with capture_logs() as logs, receiving() as server:
        receiver = Receiver(webhook=secret(tmp_path, server.url))
        with outbox(receiver) as box:
            box.add([notice()])
            assert server.came.acquire(timeout=30)
    assert logs[0]["reason"] == "RuntimeError"


def test_without_receivers_there_is_no_thread() -> None:
    before: Sequence[threading.Thread] = threading.enumerate()
    made = notifier.Notifier((), CLUSTER)
    made.add([notice()])
    assert threading.enumerate() == before
    made.close()

"""The page in a headless Chromium: live, by keyboard, and with a thousand executors."""

import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest
import uvicorn

from controller.core.times import utc
from controller.page.app import MOST_VISITORS, make_app
from controller.page.feed import Feed
from controller.storm.move_record import MoveRecord
from tests.browser import CHROMIUM, Browser, browser
from tests.messages import replace
from tests.unit.controller.page.test_page import DOCUMENT, filled, nothing

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium: type  apt install chromium")
ODD = "<img src=x onerror=alert(1)>"


@contextmanager
def served(feed: Feed, commands: list[tuple[str, ...]]) -> Iterator[str]:
    """Serve the page; what a visitor asks for is noted and refused."""

    def act(command: Sequence[str]) -> tuple[int, str]:
        commands.append(tuple(command))
        return 2, "no leader"

    def explain(topology: str, what: str) -> tuple[int, str]:
        return act(("explain", topology, what))

    app = make_app(feed, act, explain, "a-token", {"localhost"})
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(
        uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1, ws="none")
    )
    thread = threading.Thread(target=server.run, args=([listening],))
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/"
    finally:
        feed.stop()
        server.should_exit = True
        thread.join(timeout=30)
        listening.close()


@pytest.fixture
def chromium() -> Iterator[Browser]:
    with browser() as one:
        yield one


def test_it_is_live_and_asks_for_what_was_clicked(chromium: Browser) -> None:
    feed, commands = filled(), list[tuple[str, ...]]()
    (one, *_) = DOCUMENT.topologies
    with served(feed, commands) as url:
        chromium.open(url)
        chromium.wait("document.querySelectorAll('#executors tbody tr').length")
        assert one.name in chromium.run("document.querySelector('#topologies').innerText")
        rows = chromium.run("document.querySelector('#executors').innerText").splitlines()
        assert "in, tuples/s\tout, tuples/s" in rows[0]
        assert "cluster zk1:2181/storm" in chromium.run(
            "document.querySelector('#cluster').innerText"
        )
        assert chromium.run("document.title") == "nstorm · zk1:2181/storm"
        feed.take(replace(DOCUMENT, off="a fault", old="of 95 s ago"))
        chromium.wait("document.querySelector('#alerts').innerText.includes('off: a fault')")
        assert "old: of 95 s ago" in chromium.run(ALERTS)
        feed.fail("ZooKeeper has not answered")
        chromium.wait("document.querySelector('#alerts').innerText.includes('not answered')")
        chromium.run("document.querySelector('#executors tbody button').click()")
        chromium.wait("document.querySelector('#why-text').innerText == 'Refused: no leader'")
        chromium.run("document.querySelector('#why').close()")
        chromium.run("document.querySelector('#token').value = 'a-token'")
        chromium.run("document.querySelector('[data-verb=pause]').click()")
        chromium.wait("document.querySelector('#said').innerText == 'Refused: no leader'")
    explain, pause = commands
    assert explain[:2] == ("explain", one.name)
    assert pause[:2] == ("pause", f"--topology={one.name}")


CHOSEN = "document.querySelector('#topologies [aria-pressed=true]')?.innerText"
CAN_PAUSE = "document.querySelector('[data-verb=pause]')?.disabled === false"
ALERTS = "(document.querySelector('#alerts')?.innerText ?? '')"


def test_the_buttons_act_on_the_chosen_topology_or_on_none(chromium: Browser) -> None:
    (one, *_) = DOCUMENT.topologies
    alpha = replace(one, topology="alpha-1-100", name="alpha")
    wc, again = (replace(one, topology=f"wc-{n}-200", name="wc") for n in (2, 3))
    feed, commands = Feed(nothing, 60.0), list[tuple[str, ...]]()
    feed.fail("ZooKeeper has not answered")
    with served(feed, commands) as url:
        chromium.open(url)
        chromium.wait(f"{ALERTS}.includes('not answered')")
        assert not chromium.run(CAN_PAUSE)
        feed.take(replace(DOCUMENT, topologies=(wc,)))
        chromium.wait(f"{CHOSEN} == 'wc'")
        feed.take(replace(DOCUMENT, topologies=(alpha,)))  # nobody has meant the other
        chromium.wait(f"{CHOSEN} == 'alpha'")
        feed.take(replace(DOCUMENT, topologies=(alpha, wc)))
        chromium.wait("document.querySelectorAll('#topologies button').length == 2")
        chromium.run("document.querySelector('#topologies button:last-child').click()")
        feed.take(replace(DOCUMENT, topologies=(alpha,)))
        chromium.wait(f"{ALERTS}.includes('wc is not there')")
        assert not chromium.run(CAN_PAUSE)
        chromium.run("document.querySelector('[data-verb=resume]').click()")
        feed.take(replace(DOCUMENT, topologies=(alpha, again), off="a sign"))
        chromium.wait(f"{ALERTS}.includes('a sign')")
        assert chromium.run(CHOSEN) == "wc"
        chromium.run("document.querySelector('#token').value = 'a-token'")
        chromium.run("document.querySelector('[data-verb=pause]').click()")
        chromium.wait("document.querySelector('#said').innerText == 'Refused: no leader'")
    (pause,) = commands
    assert pause[:2] == ("pause", "--topology=wc")


def test_whoever_fills_in_the_form_means_the_topology_that_is_shown(chromium: Browser) -> None:
    (one, *_) = DOCUMENT.topologies
    alpha = replace(one, topology="alpha-1-100", name="alpha")
    feed = filled()
    with served(feed, []) as url:
        chromium.open(url)
        chromium.wait(CAN_PAUSE)
        chromium.run("document.querySelector('#token').focus()")
        feed.take(replace(DOCUMENT, topologies=(alpha,)))
        chromium.wait(f"{ALERTS}.includes('is not there')")
        assert not chromium.run(CAN_PAUSE)


def test_whoever_is_one_too_many_hears_so_and_gets_a_place_later(chromium: Browser) -> None:
    with served(filled(), []) as url, ExitStack() as others:
        for _ in range(MOST_VISITORS):
            watches = HTTPConnection(urlsplit(url).netloc)
            others.callback(watches.close)
            watches.request("GET", "/api/events")
            others.enter_context(watches.getresponse())
        chromium.open(url)
        chromium.wait(f"{ALERTS}.includes('while {MOST_VISITORS} visitors watch')")
        others.close()
        chromium.wait(f"{CHOSEN} && !{ALERTS}.includes('visitors watch')")


def test_hosts_that_are_off_and_what_nimbus_cannot_publish_are_alerts(chromium: Browser) -> None:
    (agent, *others) = DOCUMENT.agents
    agents = (replace(agent, off="a broken disk"), *others)
    feed = filled()
    feed.take(replace(DOCUMENT, agents=agents, unpublished={"big-2-2": "it has 300 kB"}))
    with served(feed, []) as url:
        chromium.open(url)
        chromium.wait(f"{ALERTS}.includes('a broken disk')")
        name = DOCUMENT.hosts[agent.node]
        alerts = chromium.run(ALERTS)
        assert f"The hooks on {name} are off: a broken disk" in alerts
        assert "Nimbus cannot publish big-2-2, so nothing of it is seen: it has 300 kB" in alerts


def test_of_ended_moves_those_that_held_their_executor_still_have_a_pause(
    chromium: Browser,
) -> None:
    (one, *_) = DOCUMENT.topologies
    spent = {"PREPARE": 0.1, "SWITCH": 0.1, "STOP": 0.05}
    live = MoveRecord(one.topology, "m1", "7-7", "a:1", "b:1", "MOVED", "", spent, 0.25, 1.7e9)
    spout = replace(live, executor="1-1", phase_s={**spent, "QUIET": 0.1}, stopped_after_s=0.35)
    state = replace(live, executor="8-8", phase_s={**spent, "CARRY": 0.5}, stopped_after_s=0.75)
    feed = filled()
    feed.take(replace(DOCUMENT, ended_moves=(state, spout, live)))
    pauses = "[...document.querySelectorAll('#moves tbody tr')].slice(-3).map((row) => [0, 5].map("
    pauses += "(cell) => row.cells[cell].innerText).join(' '))"
    with served(feed, []) as url:
        chromium.open(url)
        chromium.wait("document.querySelectorAll('#moves tbody tr').length")
        assert chromium.run(pauses) == ["7-7 –", "1-1 0.25 s", "8-8 0.5 s"]
        shown = chromium.run("document.querySelector('#moves').innerText")
        assert f"MOVED, {utc(live.ended_s)}" in shown
    known = [None if move.pause_s is None else round(move.pause_s, 9) for move in (live, spout)]
    assert known == [None, 0.25]


def test_text_of_others_stays_text(chromium: Browser) -> None:
    (one, *others) = DOCUMENT.topologies
    executors = tuple(replace(e, component=ODD, why=ODD, pinned=ODD) for e in one.executors)
    odd = replace(one, name=ODD, executors=executors, undoes=ODD)
    feed = filled()
    feed.take(replace(DOCUMENT, topologies=(odd, *others), off=ODD))
    with served(feed, []) as url:
        chromium.open(url)
        chromium.wait("document.querySelectorAll('#executors tbody tr').length")
        assert chromium.run("document.querySelectorAll('img').length") == 0
        assert ODD in chromium.run("document.querySelector('#alerts').innerText")


def test_people_read_hosts_and_no_ids_of_supervisors(chromium: Browser) -> None:
    (one, *others) = DOCUMENT.topologies
    assert one.decision
    id_ = "9989472a-b859-4894-8e2a-dad5dfca7c40-127.0.0.1"
    decision = replace(one.decision, reason=f"{id_}:1 is hot", warnings=(f"{id_} is full",))
    feed = filled()
    topologies = (replace(one, decision=decision), *others)
    feed.take(replace(DOCUMENT, hosts={**DOCUMENT.hosts, id_: "tall-host"}, topologies=topologies))
    with served(feed, []) as url:
        chromium.open(url)
        chromium.wait("document.querySelectorAll('#executors tbody tr').length")
        shown = chromium.run("document.querySelector('#decision').innerText")
        assert "tall-host:1 is hot" in shown and "tall-host is full" in shown
        assert id_ not in chromium.run("document.body.innerText")


def test_a_thousand_executors_are_shown_and_found(chromium: Browser) -> None:
    (one, *others) = DOCUMENT.topologies
    (first, *_) = one.executors
    many = tuple(replace(first, executor=f"{i}-{i}", component=f"c{i % 9}") for i in range(1000))
    feed = filled()
    feed.take(replace(DOCUMENT, topologies=(replace(one, executors=many), *others)))
    with served(feed, []) as url:
        chromium.open(url)
        chromium.wait("document.querySelectorAll('#executors tbody tr').length == 1000")
        chromium.run(
            "document.querySelector('#find').value = '77-77 c5';"
            "document.querySelector('#find').dispatchEvent(new Event('input'))"
        )
        assert chromium.run("document.querySelectorAll('#executors tbody tr').length") == 1


def test_the_focus_stays_and_only_what_has_changed_is_drawn(chromium: Browser) -> None:
    feed = filled()
    (one, *others) = DOCUMENT.topologies
    busy = tuple(replace(e, queue=7_654_321) for e in one.executors)
    with served(feed, []) as url:
        chromium.open(url)
        chromium.wait("document.querySelectorAll('#executors tbody tr').length")
        chromium.run(
            "document.querySelector('#executors tbody tr:last-child button').focus();"
            "document.querySelector('#traffic').firstChild.id = 'drawn-once'"
        )
        name = chromium.run("document.activeElement.ariaLabel")
        assert name.startswith("Why ")
        feed.take(replace(DOCUMENT, topologies=(replace(one, executors=busy), *others)))
        chromium.wait("document.querySelector('#executors').innerText.includes('7,654,321')")
        assert chromium.run("document.activeElement.ariaLabel") == name
        assert chromium.run("document.querySelector('#drawn-once') !== null")


def test_each_control_is_reached_by_keyboard_and_has_a_name(chromium: Browser) -> None:
    with served(filled(), []) as url:
        chromium.open(url)
        chromium.wait("document.querySelectorAll('#executors tbody tr').length")
        nameless = (
            "[...document.querySelectorAll('button, input, a')].filter((one) => "
            "one.tabIndex < 0 || !(one.innerText || one.ariaLabel || one.labels?.length)).length"
        )
        assert chromium.run(nameless) == 0
        assert chromium.run(
            "[...document.querySelectorAll('svg[role=img]')].every((one) => one.ariaLabel)"
        )

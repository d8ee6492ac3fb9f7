"""People read hosts where texts have ids of supervisors."""

from controller.core.hostnames import shown

ONE = "9989472a-b859-4894-8e2a-dad5dfca7c40-127.0.0.1"
HOSTS = {ONE: "node-1", "a": "node-2"}


def test_an_id_in_a_text_becomes_its_host() -> None:
    assert shown(ONE, HOSTS) == "node-1"
    assert shown(f"{ONE} at 0.99 of its CPU", HOSTS) == "node-1 at 0.99 of its CPU"
    assert shown(f"from {ONE}:6700 to {ONE}.", HOSTS) == "from node-1:6700 to node-1."
    assert shown("a move to a:6700, a", HOSTS) == "a move to node-2:6700, a"
    other = ONE.replace("9989472a", "00000000")
    assert shown(f"no report of {other}", HOSTS) == f"no report of {other}"

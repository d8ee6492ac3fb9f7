"""What ``nstorm status`` shows."""

from messages import node_acks

from controller.cli.overview import as_document, as_tables


def test_a_node_says_how_much_of_its_load_found_no_room() -> None:
    acks = [node_acks(node, [], "c") for node in ("s1", "s2")]
    document = as_document((), acks, None, None, left_out={"s1": 0, "s2": 19_000}, now_s=0.0)
    assert [row["traffic_rows_left_out"] for row in document["agents"]] == [0, 19_000]
    whole, cut = [str(line) for line in as_tables(document) if str(line).startswith("agent")]
    assert whole.endswith("supervisor with hooks")
    assert cut.endswith("load without its 19000 smallest rows of traffic")

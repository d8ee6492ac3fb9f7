"""Lines of the journal: whole or recognised as not."""

import json

import msgspec
import pytest

from controller.journal.lines import JournalError, compact, from_line, to_line
from controller.journal.record import Head

ANY = msgspec.json.Decoder()


def test_a_line_is_plain_json_with_its_checksum() -> None:
    line = to_line(compact({"kind": "tick", "seq": 7, "loads": [{"node": "a"}, {}]}))
    document = json.loads(line)
    assert document["crc"] == line[8:16].decode()
    assert document == {
        "crc": document["crc"],
        "kind": "tick",
        "seq": 7,
        "loads": [{"node": "a"}, {}],
    }
    assert from_line(line, ANY) == document
    assert line.count(b"\n") == 1


def test_a_line_that_is_cut_anywhere_is_no_record() -> None:
    line = to_line(compact({"kind": "tick", "text": "héllo"}))
    for end in range(len(line)):
        assert from_line(line[:end], ANY) is None


def test_a_changed_byte_is_no_record() -> None:
    line = to_line(compact({"kind": "tick", "text": "hello"}))
    for at in range(len(line)):
        changed = line[:at] + bytes([line[at] ^ 1]) + line[at + 1 :]
        assert from_line(changed, ANY) is None, changed


def test_what_is_no_number_in_json_is_refused() -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        compact({"x": float("nan")})


def test_a_key_that_is_not_known_is_passed_over() -> None:
    line = to_line(compact({"kind": "head", "format": 3, "of_a_later_version": [1]}))
    assert from_line(line, msgspec.json.Decoder(Head)) == Head(3)


def test_what_is_whole_and_of_another_form_is_of_another_version() -> None:
    line = to_line(compact({"kind": "head", "config": 7}))
    with pytest.raises(JournalError, match=r"another version of nstorm: Expected `object`.*config"):
        from_line(line, msgspec.json.Decoder(Head))

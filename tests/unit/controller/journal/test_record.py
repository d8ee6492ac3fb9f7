"""Lines of the journal: whole or recognised as not."""

import json

import pytest

from controller.journal.record import compact, from_line, joined, to_line


def test_a_line_is_plain_json_with_its_checksum() -> None:
    line = to_line(joined({"kind": "tick", "seq": 7}, {"loads": [b'{"node":"a"}', b"{}"]}))
    document = json.loads(line)
    assert document.pop("crc") == line[8:16].decode()
    assert document == {"kind": "tick", "seq": 7, "loads": [{"node": "a"}, {}]}
    assert from_line(line) == document
    assert line.count(b"\n") == 1


def test_a_line_that_is_cut_anywhere_is_no_record() -> None:
    line = to_line(compact({"kind": "tick", "text": "héllo"}))
    for end in range(len(line)):
        assert from_line(line[:end]) is None


def test_a_changed_byte_is_no_record() -> None:
    line = to_line(compact({"kind": "tick", "text": "hello"}))
    for at in range(len(line)):
        changed = line[:at] + bytes([line[at] ^ 1]) + line[at + 1 :]
        assert from_line(changed) is None, changed


def test_what_is_no_number_in_json_is_refused() -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        compact({"x": float("nan")})

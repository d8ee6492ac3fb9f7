"""The envelope against the golden vectors, and every way in which it may be damaged."""

import struct
import zlib
from pathlib import Path

import pytest

from kvstore.envelope import Envelope, pack, unpack
from kvstore.errors import EnvelopeError

GOLDEN = Path(__file__).parents[2] / "golden" / "wire"


def golden(name: str) -> bytes:
    return (GOLDEN / f"{name}.bin").read_bytes()


def test_an_envelope_is_laid_out_as_the_page_says() -> None:
    head = b"NSTM" + bytes([0, 1]) + (300).to_bytes(8, "big") + (3).to_bytes(4, "big") + b"abc"
    assert pack(300, b"abc") == head + struct.pack(">I", zlib.crc32(head))


@pytest.mark.parametrize(
    ("name", "version", "payload"),
    [
        ("local_plan", 1700000012345, "local_plan"),
        ("worker_ack", 2, "worker_ack"),
        ("empty_payload", 1, None),
    ],
)
def test_golden_envelopes(name: str, version: int, payload: str | None) -> None:
    content = (GOLDEN / f"{payload}.json").read_bytes() if payload else b""
    assert unpack(golden(name)) == Envelope(version, content)
    assert pack(version, content) == golden(name)


def test_the_highest_version() -> None:
    assert unpack(golden("highest_version")) == Envelope(2**63 - 1, b"{}")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("bad_crc", "damaged"),
        ("bad_magic", "begins with b'MTSN'"),
        ("bad_schema", "schema 2"),
        ("bad_length", "claims a payload of"),
        ("short", "claims a payload of"),
        ("short_frame", "fewer than its own frame"),
        ("nothing", "0 bytes"),
    ],
)
def test_golden_envelopes_that_are_broken(name: str, said: str) -> None:
    with pytest.raises(EnvelopeError, match=said):
        unpack(golden(name))


def test_no_flipped_bit_goes_unseen() -> None:
    sound = pack(7, b"plan")
    for position in range(len(sound) * 8):
        damaged = bytearray(sound)
        damaged[position // 8] ^= 1 << position % 8
        with pytest.raises(EnvelopeError):
            unpack(bytes(damaged))

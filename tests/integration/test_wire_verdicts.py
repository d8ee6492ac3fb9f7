"""Python and Java give the same verdict on the same bytes, whoever made them.

Only plans are read by both. One JVM judges all of them, because starting it takes longest.
"""

import base64
import json
import re
import subprocess
from pathlib import Path
from random import Random

import pytest

from migration import WireError
from migration.model import Base, Entry, ExecutorId, LocalPlan, Phase, Plan, Slot, Way
from migration.wire import decode, encode, packed

JVM = Path(__file__).parents[2] / "migration" / "jvm" / "target"
COUNT = 4000
SOUND = Plan(
    "6f1c-ü",
    3,
    17,
    "wc-1",
    (
        Entry(
            "m12",
            ExecutorId(7, 7),
            Slot("s1", 6700),
            Slot("s:2", 6701),
            Phase.SWITCH,
            Base(Slot("s1", 6700), 1700000000),
        ),
        Entry(
            "m9",
            ExecutorId(3, 4),
            Slot("s2", 6701),
            Slot("s1", 6700),
            Phase.STOP,
            Base(Slot("s2", 6701), 0),
            'Storm said "no"\n',
            Way.SPOUT,
        ),
    ),
)
ODD_VALUES = [
    "null", "true", '""', '"x"', "[]", "{}", "0", "-0", "-1", "1.0", "1e3", "1e999", "01", "+1",
    "2147483647", "2147483648", "9223372036854775807", "9223372036854775808", "1" * 400,
    "NaN", "Infinity", "[7,7]", "[7,7,8]", "[8,7]", "[0,7]", "[7]", '["s1:6700",5]', '"s1:0"',
    '"s1:65535"', '"s1:65536"', '":6700"', '"s1:"', '"s1"', '"s1:+1"', '"s1:٣"', '"s1:007"',
    '"-x"', '"x\\u007f"', '"-s1:6700"', '"..:6700"', '"a/b:6700"',
    '"s\\u0085:6700"', '"\\u202e"', '"' + "x" * 513 + '"',
    '"\\u0000"', '"\\ud83c\\udf29"', '"\\ud800"', '"\\x"', '"SETTLE"', '"LATER"', '"UNKNOWN"',
    '"live"', '"carry"', '"renew"', '"leap"', '"LIVE"', '"unknown"',
    "[" * 40 + "]" * 40, '{"a":{"b":[1,2,{"c":null}]}}', "'x'", "nul", "/**/1", "1//",
]  # fmt: skip
SPACES = [b" ", b"\n", b"\t", b"\r", b"\xef\xbb\xbf", b"\0"]
KEYS = ["cluster", "epoch", "version", "topology", "entries", "id", "executor", "from", "to"]
KEYS += ["phase", "base", "void", "way", "later", "Epoch", ""]


def mutated(sound: bytes, random: Random) -> bytes:
    """Do to a message what disks, hands and later versions do."""
    text = sound
    for _ in range(random.choice([1, 1, 1, 2, 3])):
        kind = random.randrange(7)
        if kind == 0:
            text = text[: random.randrange(len(text) + 1)]
        elif kind == 1 and text:
            at = random.randrange(len(text))
            text = text[:at] + bytes([random.randrange(256)]) + text[at + 1 :]
        elif kind == 2:
            at = random.randrange(len(text) + 1)
            text = text[:at] + random.choice(SPACES) + text[at:]
        elif kind == 3:  # a key that is new, or there already
            opens = [found.end() for found in re.finditer(rb"\{", text)]
            if opens:
                at = random.choice(opens)
                pair = f'"{random.choice(KEYS)}":{random.choice(ODD_VALUES)},'.encode()
                text = text[:at] + pair + text[at:]
        elif kind == 4:  # another value
            values = list(re.finditer(rb'(?<=":)("[^"]*"|[0-9]+|null|\[[^\[\]]*\])', text))
            if values:
                found = random.choice(values)
                odd = random.choice(ODD_VALUES).encode()
                text = text[: found.start()] + odd + text[found.end() :]
        elif kind == 5:  # a key less
            keys = list(re.finditer(rb'"[a-z]+":("[^"]*"|[0-9]+|null|\[[^\[\]]*\]),', text))
            if keys:
                found = random.choice(keys)
                text = text[: found.start()] + text[found.end() :]
        else:  # a key twice, with the value of before or another one
            keys = list(re.finditer(rb'"[a-z]+":("[^"]*"|[0-9]+|null|\[[^\[\]]*\]),', text))
            if keys:
                found = random.choice(keys)
                text = text[: found.end()] + found[0] + text[found.end() :]
    return text


def verdict(kind: type[Plan] | type[LocalPlan], message: bytes) -> str:
    try:
        return f"ok {encode(decode(kind, message)).decode()}"
    except WireError:
        return "refused"


@pytest.mark.parametrize("kind", [Plan, LocalPlan])
def test_both_languages_give_the_same_verdict(kind: type[Plan] | type[LocalPlan]) -> None:
    sound = encode(SOUND if kind is Plan else LocalPlan("c", (SOUND,)))
    random = Random(18)
    messages = [sound, b"", *(mutated(sound, random) for _ in range(COUNT))]
    whole = packed(sound + b" " * 3000)
    messages += [cut[:end] for cut in (sound, whole) for end in range(len(cut))]
    later = b'{"later":"%s",' % (b"x" * 100_000_000)
    messages += [whole, packed(later + sound[1:]), b" " * (16 << 20) + sound]
    lines = b"\n".join(map(base64.b64encode, messages)) + b"\n"
    judge = [str(JVM / "nstorm-hooks.jar"), str(JVM / "test-classes")]
    done = subprocess.run(
        ["java", "-cp", ":".join(judge), "nstorm.wire.Verdicts", kind.__name__],
        input=lines,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    theirs = done.stdout.decode().split("\n")[:-1]  # a text may have other ends of lines in it
    ours = [verdict(kind, message) for message in messages]
    different = [
        (message, one, other)
        for message, one, other in zip(messages, ours, theirs, strict=True)
        if one != other
    ]
    assert different == []
    # Both verdicts are there, so the test can fail.
    assert 400 < sum(one.startswith("ok") for one in ours) < COUNT
    assert json.loads(ours[0].removeprefix("ok "))

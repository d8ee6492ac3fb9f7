"""A link, or a file of somebody else, in the place of a store is not touched."""

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from kvstore.env import Env
from kvstore.errors import StoreError
from kvstore.foreign import refuse_foreign, replace_file
from kvstore.reader import StoreReader
from kvstore.writer import PlanWriter


@pytest.mark.parametrize("name", ["lock.mdb", "data.mdb"])
@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_the_file_that_a_link_in_a_store_leads_to_is_not_overwritten(
    tmp_path: Path, name: str, link: object
) -> None:
    victim, store = tmp_path / "victim", tmp_path / "store"
    victim.write_bytes(b"x" * 14_000)
    with closing(Env(store, writable=True)) as env:
        env.put(b"ack", b"1")
    (store / name).unlink()
    link(victim, store / name)  # type: ignore[operator]
    for opening in (lambda: StoreReader(store), lambda: PlanWriter(store, b"plan")):
        with pytest.raises(StoreError, match=rf"{name} .*: it is not touched"):
            opening()
    assert victim.read_bytes() == b"x" * 14_000


def test_a_folder_that_is_a_link_or_that_everybody_may_write_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    with pytest.raises(StoreError, match="is a link"):
        PlanWriter(tmp_path / "link", b"plan")
    (tmp_path / "real").chmod(0o1777)
    with pytest.raises(StoreError, match="everybody may write"):
        PlanWriter(tmp_path / "real", b"plan")


def test_a_folder_of_another_user_is_refused(tmp_path: Path) -> None:
    refuse_foreign(tmp_path, {os.geteuid()})
    with pytest.raises(StoreError, match=f"belongs to user {os.geteuid()}"):
        refuse_foreign(tmp_path, {os.geteuid() + 1})


START = """
import os, sys
from pathlib import Path
from kvstore.errors import StoreError
from kvstore.writer import PlanWriter
root = Path(sys.argv[1])
(root / "plan").mkdir()
fill = os.open(root / "fill", os.O_CREAT | os.O_WRONLY)
try:
    while True:
        os.write(fill, b"x" * 4096)
except OSError:
    pass
try:
    PlanWriter(root / "plan", b"plan")
except StoreError as error:
    print(error)
os.close(fill)
os.unlink(root / "fill")
with PlanWriter(root / "plan", b"plan") as writer:
    writer.write(b"there is room again")
"""


def test_a_writer_that_starts_on_a_full_disk_says_so(tmp_path: Path) -> None:
    """It has died of a bus error, without a message."""
    mounted = f'mount -t tmpfs -o size=256k none {tmp_path} && exec {sys.executable} -c "$0" $1'
    command = ["unshare", "--mount", "--map-root-user", "sh", "-c", mounted, START, str(tmp_path)]
    trial = [*command[:3], "true"]
    if shutil.which("unshare") is None or subprocess.run(trial, check=False).returncode:
        pytest.skip("mount namespaces are not to be had here")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr or f"ended by signal {-done.returncode}"
    assert "cannot open the store" in done.stdout
    assert "No space left" in done.stdout


def test_files_of_one_folder_are_replaced_side_by_side(tmp_path: Path) -> None:
    """`off` and `off.cluster` are of two processes, and had one name until they were whole."""
    wrong: list[object] = []

    def replaced(name: str) -> None:
        for _ in range(100):
            try:
                replace_file(tmp_path / name, name.encode())
                found = (tmp_path / name).read_bytes()
            except OSError as error:
                wrong.append(error)
            else:
                wrong.extend([found] if found != name.encode() else [])

    with ThreadPoolExecutor() as pool:
        list(pool.map(replaced, ("off", "off.cluster")))
    assert wrong == []

"""What a controller still knows after a restart, from the journal of this machine."""

from pathlib import Path

from controller.config import Config
from controller.cycle import Memory
from controller.journal.lines import JournalError
from controller.journal.reader import heads
from controller.journal.record import decode, made
from controller.policies.registry import policy
from kvstore.logs import log

# Of other writers, and of a controller that did not lead, there may be newer ones.
_LOOKED_AT = 10


def remembered(config: Config) -> Memory:
    """Read the peaks of the input, and what the policy remembers for long.

    The journal has them as of at most two minutes before its end. Empty without a journal, and
    where none can be read.
    """
    folder = config.journal.dir
    if folder is None or not folder.is_dir():
        return Memory()
    try:
        return _newest(folder, config)
    except JournalError as error:
        log.warning("journal_not_remembered", folder=str(folder), reason=str(error))
        return Memory()


def _newest(folder: Path, config: Config) -> Memory:
    decides = policy(config.policy, config.options)
    for head, _ in zip(heads(folder), range(_LOOKED_AT), strict=False):
        memory = decode(Memory, head.memory)
        if not memory.peaks:
            continue
        same_policy = head.config.get("policy") == config.policy
        of_policy = memory.of_policy if same_policy else {}
        lasting = {
            topology: decides.lasting(made(decides.memory_type, one))
            for topology, one in of_policy.items()
        }
        kept = {topology: one for topology, one in lasting.items() if one is not None}
        log.info("peaks_remembered", since=head.time_s, topologies=sorted(memory.peaks))
        return Memory(peaks=memory.peaks, of_policy=kept)
    return Memory()

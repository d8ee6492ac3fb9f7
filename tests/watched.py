"""The cycle, as after minutes of watching: no move for gain waits."""

from dataclasses import replace

from controller.config import Config, Mode
from controller.core.blocks import Block
from controller.core.effect import LEAST_BEFORE
from controller.core.runs import Watch
from controller.cycle import CycleInput, Memory
from controller.cycle import cycle as shipped
from controller.report import Report


def first_memory(now_s: float) -> Memory:
    """Give what to begin with: a topology that was watched, and of which nothing else is known."""
    return watched(Memory(watches={"wc-1": Watch()}), now_s)


def cycle(memory: Memory, seen: CycleInput, settings: Config) -> tuple[Memory, Report]:
    """Decide by the shipped cycle, and remember the blocks that the next run is judged by."""
    after, report = shipped(memory, seen, settings)
    return after if settings.mode is Mode.OBSERVE else watched(after, seen.now_s), report


def watched(memory: Memory, now_s: float) -> Memory:
    blocks = (Block(now_s, cores=1.0, input_tps=1.0),) * LEAST_BEFORE

    def of(watch: Watch) -> Watch:
        is_enough = watch.run is not None or len(watch.before(now_s)) >= LEAST_BEFORE
        return watch if is_enough else replace(watch, blocks=blocks)

    return replace(memory, watches={name: of(watch) for name, watch in memory.watches.items()})

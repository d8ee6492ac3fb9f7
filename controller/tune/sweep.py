"""Runs every parameter set over the log, whoever does the work, and adds up how each did."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, fields
from typing import TypeAlias

from controller.core.policy import search_inline
from controller.replay.recording import Span
from controller.replay.rerun import Rerun, Series
from controller.tune.chunks import Chunk, Episode, waves
from controller.tune.space import ParameterSet

# The spans of each episode, and whether each is held back.
Wave: TypeAlias = dict[Episode, list[tuple[bool, Span]]]


@dataclass(frozen=True, slots=True)
class Figures:
    """How a parameter set did; figures of several topologies and days add up."""

    ticks: int = 0
    moves: int = 0
    span_s: float = 0.0
    total: float = 0.0  # tuples sent
    inter_node: float = 0.0  # those to other nodes
    inter_worker: float = 0.0  # those to other workers (of other nodes too)
    overload_s: float = 0.0  # seconds that workers were overloaded, added over the workers

    def __add__(self, other: "Figures") -> "Figures":
        return Figures(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    @property
    def inter_node_frac(self) -> float:
        """Share of the tuples that crossed between nodes; 0 without tuples."""
        return self.inter_node / self.total if self.total else 0.0

    @classmethod
    def of(cls, series: Series) -> "Figures":
        span_s = series.span_s
        return cls(
            ticks=len(span_s),
            moves=len(series.moves),
            span_s=float(span_s.sum()),
            total=float((series.total_tps * span_s).sum()),
            inter_node=float((series.inter_node_tps * span_s).sum()),
            inter_worker=float((series.inter_worker_tps * span_s).sum()),
            overload_s=float(series.overload_s.sum()),
        )


@dataclass(frozen=True, slots=True)
class Trial:
    """One parameter set on its way through one episode."""

    number: int  # of the parameter set
    episode: Episode
    run: Rerun  # as it stands after what it has seen of the episode
    goes_on: bool  # whether more of the episode comes later


@dataclass(frozen=True, slots=True)
class SweptChunk:
    number: int  # of the parameter set
    episode: Episode
    run: Rerun | None  # to go on with, if the episode goes on
    chosen_by: Figures  # before the load is held back
    held_back: Figures  # after that


@dataclass(frozen=True, slots=True)
class SetOutcome:
    parameters: ParameterSet
    chosen_by: Figures  # with the load it is chosen by
    held_back: Figures  # with the load that came later


# Works trials off, in any order, and reports from time to time how many are done.
Engine: TypeAlias = Callable[[Wave, Sequence[Trial], Callable[[int], None]], Iterable[SweptChunk]]


def step(wave: Wave, trial: Trial) -> SweptChunk:
    figures = {False: Figures(), True: Figures()}
    for held_back, span in wave[trial.episode]:
        trial.run.take(span)
        figures[held_back] += Figures.of(trial.run.cut())
    run = trial.run if trial.goes_on else None
    return SweptChunk(trial.number, trial.episode, run, figures[False], figures[True])


def sweep(
    chunks: Sequence[Chunk],
    sets: Sequence[ParameterSet],
    engine: Engine,
    progress: Callable[[float], None],
    searched: Collection[str] = (),
) -> list[SetOutcome]:
    """Run all parameter sets over all of the log; one outcome a set, in their order.

    Policies search for the topologies that are `searched` for, by id, and for no others. The result
    does not depend on the workers or their order. `progress` gets the share that is done, up to 1.
    """
    runs: dict[tuple[Episode, int], Rerun | None] = {}
    sums = [(Figures(), Figures()) for _ in sets]
    parts = list(waves(chunks))
    whole, so_far = sum(chunk.ticks for chunk in chunks), 0
    for index, part in enumerate(parts):
        wave = _load(part)
        later = {chunk.episode for one in parts[index + 1 :] for chunk in one}
        trials = [
            Trial(
                number,
                episode,
                runs.pop((episode, number), None) or _begun(one, episode[0] in searched),
                episode in later,
            )
            for episode in wave
            for number, one in enumerate(sets)
        ]
        ticks = sum(chunk.ticks for chunk in part)

        def report(done: int, before: int = so_far, each: float = ticks / len(trials)) -> None:
            progress((before + each * done) / whole)

        # In a fixed order: sums of floats depend on it.
        done = engine(wave, trials, report)
        for one in sorted(done, key=lambda of: (of.episode, of.number)):
            chosen_by, held_back = sums[one.number]
            sums[one.number] = chosen_by + one.chosen_by, held_back + one.held_back
            if one.run is not None:
                runs[one.episode, one.number] = one.run
        so_far += ticks
    return [SetOutcome(one, *figures) for one, figures in zip(sets, sums, strict=True)]


def _begun(one: ParameterSet, searches: bool) -> Rerun:
    return Rerun(one.config, explain=False, search=search_inline if searches else None)


def _load(chunks: Sequence[Chunk]) -> Wave:
    wave: Wave = {}
    for chunk in chunks:
        wave.setdefault(chunk.episode, []).append((chunk.held_back, chunk.load()))
    return wave

"""Puts into the journal what no decision depends on: moves that have ended, operators' wishes."""

from collections.abc import Mapping
from dataclasses import asdict

from msgspec import structs

from controller.journal.recorder import Recorder
from controller.storm.command_record import Command
from controller.storm.move_record import MoveRecord
from kvstore.printable import shortened


class Notes:
    """Writes each of them once."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._moves: list[MoveRecord] = []
        self._commands: Mapping[str, Command] = {}

    def moves(self, ended: list[MoveRecord]) -> None:
        """Note moves that have ended, or were measured, whoever leads."""
        if ended != self._moves:
            self._moves = ended
            self._recorder.add_moves(map(asdict, ended))

    def commands(self, asked: Mapping[str, Command]) -> None:
        """Note what operators ask for, by path, and what becomes of it."""
        for path, command in asked.items():
            if self._commands.get(path) != command:
                fields = structs.asdict(structs.replace(command, answer=None))
                short = {key: shortened(value) for key, value in fields.items()}
                self._recorder.note({"path": path, **short})
        self._commands = asked

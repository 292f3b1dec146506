"""The whole exception family, on one screen.

The web misbehaving is never an exception (it is a `Failed` value); bad input rows are outcomes. What remains is
ours: a wrong configuration, a broken store, a broken promise. Each error says what, where, and what to do next,
and survives pickling between processes.
"""

from __future__ import annotations


class CorpusError(Exception):
    """Base of every error this package raises on purpose. `exit_code` is what the command line returns."""

    exit_code = 1

    def __init__(self, what: str, where: str = "", hint: str = "") -> None:
        super().__init__(what, where, hint)
        self.what, self.where, self.hint = what, where, hint

    def __str__(self) -> str:
        text = f"{self.where}: {self.what}" if self.where else self.what
        return f"{text}\n  hint: {self.hint}" if self.hint else text


class UsageError(CorpusError):
    """The command line or the configuration asks for something that cannot be."""

    exit_code = 2


class NothingDone(CorpusError):
    """The run finished, but nothing was stored, exported or readable; `what` is the reason in one sentence."""

    exit_code = 3


class StoreError(CorpusError):
    """A durable thing is missing, damaged or not writable."""


class AlreadyExists(StoreError):
    """A create-only object with this name is already there."""


class NewerSchema(StoreError):
    """The folder was written by a newer version of this software."""

    exit_code = 2


class Locked(StoreError):
    """Another process holds the stage lock; `where` names its pid, host and age."""


class FenceLost(StoreError):
    """This owner's epoch has been superseded; it must stop writing at once."""


class NonDeterministicStage(CorpusError):
    """A stage produced other bytes for the same key: a law is broken, and the run stops."""


class WorkerDied(CorpusError):
    """A worker process ended without a report and its work could not be handed on."""


class IllegalTransition(CorpusError):
    """An event that its state does not allow; nothing was changed."""

"""The whole exception family, on one screen.

The web misbehaving is never an exception (it is a `Failed` value); bad input rows are outcomes. What remains is
ours: a wrong configuration, a broken store, a broken promise. Each error says what, where, and what to do next,
and survives pickling between processes.
"""

from __future__ import annotations


class CorpusError(Exception):
    """Base of every error this package raises on purpose. `exit_code` is what the command line returns."""

    exit_code = 1
    next = "do what the hint says, then run the same command again: it goes on where it stopped"
    """What a person can do about it, in general; `hint` says it of the case at hand."""

    def __init__(self, what: str, where: str = "", hint: str = "") -> None:
        super().__init__(what, where, hint)
        self.what, self.where, self.hint = what, where, hint

    def __str__(self) -> str:
        text = f"{self.where}: {self.what}" if self.where else self.what
        return f"{text}\n  hint: {self.hint}" if self.hint else text


class UsageError(CorpusError):
    """The command line or the configuration asks for something that cannot be."""

    exit_code = 2
    next = "correct the command, or the lines that are named, and run it again"


class NothingDone(CorpusError):
    """The run finished, but nothing was stored, exported or readable; `what` is the reason in one sentence."""

    exit_code = 3
    next = "read the reason; corpus status and corpus why show what stood in the way"


class StoreError(CorpusError):
    """A durable thing is missing, damaged or not writable."""

    next = "corpus verify names the damage; corpus verify --repair mends what can be made again"


class TryLater(StoreError):
    """A store that has no room or does not answer right now: nothing is lost, and the same step may succeed later."""

    next = "make room, or wait for the store, and run the same command again; a crawl waits by itself"


class NoRoom(TryLater):
    """A disk of this machine is full."""

    next = "make room and run the same command again; a crawl waits by itself, and a worker of a fleet hands over to others"


class ServerGone(StoreError):
    """The database server does not answer, or has ended the connection: what was acknowledged is kept."""

    next = "start the server and run the same command again; a worker of a fleet waits by itself"


class AlreadyExists(StoreError):
    """A create-only object with this name is already there."""

    next = "choose another name: what is there is never overwritten"


class NewerSchema(StoreError):
    """The folder was written by a newer version of this software."""

    exit_code = 2
    next = "install the version that is named, or a newer one"


class Locked(StoreError):
    """Another process holds the stage lock; `where` names its pid, host and age."""

    next = "wait for the process that is named, or end it: the lock goes with it"


class FenceLost(StoreError):
    """This owner's epoch has been superseded; it must stop writing at once."""

    next = "nothing: another process took over, and what was acknowledged is kept"


class NonDeterministicStage(CorpusError):
    """A stage produced other bytes for the same key: a law is broken, and the run stops."""

    next = "report it; run again after corpus verify --repair"


class WorkerDied(CorpusError):
    """A worker process ended without a report and its work could not be handed on."""

    next = "look at memory and disk (corpus doctor), then run the same command again"


class IllegalTransition(CorpusError):
    """An event that its state does not allow; nothing was changed."""

    next = "report it, with the message"

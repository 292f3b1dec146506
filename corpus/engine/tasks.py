"""What an engine is: tasks in, outcomes out. Tasks exchange names of files, never documents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Task:
    """`key` names it in errors and orders its outcome; `spec` is picklable and small.

    `notes`: files in which the task writes down what it is at. They are of use after a crash only, and then they lie where the
    engine was called, wherever the task ran.
    """

    key: str
    spec: Any
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Done:
    key: str
    value: Any


@dataclass(frozen=True, slots=True)
class Crashed:
    """The task killed its worker `tries` times; `detail` is the last sign of life.

    `overran`: a page took more CPU than it may (`engine/page_watch.py`), which trying again would not change.
    """

    key: str
    tries: int
    detail: str
    overran: bool = False


TaskOutcome = Done | Crashed


class Engine(Protocol):
    """Runs `module:function` over tasks. An exception of ours inside a task is raised here; outcomes come unordered."""

    def run(self, function: str, tasks: Iterable[Task]) -> Iterator[TaskOutcome]: ...

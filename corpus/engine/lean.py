"""What our own processes do without, so that starting one costs less: for commands and their children, never for the library.

pyarrow imports pandas, wherever it is installed, to ask whether a value is pandas'; pydantic searches everything installed for
plugins; the linear algebra of numpy starts a thread per core that spins. Nothing here uses any of them. What others import, a user's
own rules first of all, they get; over the last two the environment has the last word.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import PathFinder
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import FrameType, ModuleType

UNUSED = frozenset({"pandas"})
_OURS = frozenset({"corpus", "pyarrow"})
"""Packages that do not see it. pyarrow's own code is compiled, so who called it is seen in its place."""
ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1", "PYDANTIC_DISABLE_PLUGINS": "__all__"}
"""Read when numpy and pydantic are imported, by children as well."""


class _Without(PathFinder):
    """The usual finder of installed modules, which does not show us those that are not used."""

    @classmethod
    def find_spec(cls, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if fullname in UNUSED and _wanted_by() in _OURS:
            return None
        return super().find_spec(fullname, path, target)


def _wanted_by() -> str:
    """The top package of whoever imports: the first caller that is not the import system itself."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = str(frame.f_globals.get("__name__", ""))
        if name != __name__ and not name.startswith(("importlib", "_frozen_importlib")):
            return name.partition(".")[0]
        frame = frame.f_back
    return ""


@contextmanager
def lean() -> Iterator[None]:
    """Leave out inside the block what nobody there needs. What is loaded already stays."""
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    sys.meta_path[:] = [_Without if finder is PathFinder else finder for finder in sys.meta_path]
    try:
        yield
    finally:
        sys.meta_path[:] = [PathFinder if finder is _Without else finder for finder in sys.meta_path]

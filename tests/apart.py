"""Tools that would break our environment live in one of their own: `make interop` fills it, `requirements-apart.txt` says with what."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

WHY = "no environment for tools that live apart: run make interop, or set CORPUS_APART to one made from requirements-apart.txt"


def apart(tool: str) -> Path:
    """A command of that environment; skips where it is not there."""
    folder = Path(os.environ.get("CORPUS_APART") or Path(__file__).resolve().parents[1] / ".venv-apart")
    found = folder / "bin" / tool
    if not found.exists():
        pytest.skip(f"{tool}: {WHY}")
    return found

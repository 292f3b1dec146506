"""What a look at the machine found: one line each, with what to do about it. Shared by `check` and `doctor`."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal

State = Literal["ok", "warn", "fault"]


@dataclass(frozen=True, slots=True)
class Finding:
    """`key`: the configuration key that a fault belongs to, or empty for the machine itself."""

    name: str
    state: State
    said: str
    hint: str = ""
    key: str = ""

    def document(self) -> dict[str, str]:
        return asdict(self)


def ok(name: str, said: str) -> Finding:
    """All is well."""
    return Finding(name, "ok", said)


def warn(name: str, said: str, hint: str, key: str = "") -> Finding:
    """It will work, but not well."""
    return Finding(name, "warn", said, hint, key)


def fault(name: str, said: str, hint: str, key: str = "") -> Finding:
    """It will not work."""
    return Finding(name, "fault", said, hint, key)

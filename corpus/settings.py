"""The base of every stage's settings, and the quantities that configuration files write with a unit.

A settings model is frozen, refuses unknown keys and never holds a default that means "no limit": an absent key is
`None`. Docstrings of fields become the descriptions of the published JSON Schema.
"""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, PlainSerializer

_DURATION_S = {"ms": 0.001, "s": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_SIZE_B = {
    "B": 1, "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
    "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40,
}  # fmt: skip
_QUANTITY = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]+)\s*\Z")


def _parse(value: Any, units: dict[str, float] | dict[str, int], what: str, example: str) -> float:
    if isinstance(value, str) and (match := _QUANTITY.match(value)) and match[2] in units:
        number = float(match[1]) * units[match[2]]
        if number <= 0:
            raise ValueError(f"a {what} must be above zero; leave the key out for no limit")
        return number
    raise ValueError(f"not a {what}: write it like {example} (units: {', '.join(units)})")


def seconds(value: Any) -> float:
    """`"500ms"`, `"2s"`, `"30d"` as seconds. Raises ValueError with an example of the right form."""
    if isinstance(value, float):  # already parsed: a model built from another model's values
        return value
    return float(_parse(value, _DURATION_S, "duration", '"2s" or "30d"'))


def size_bytes(value: Any) -> int:
    """`"80GB"`, `"300MiB"` as bytes. Raises ValueError with an example of the right form."""
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    return int(_parse(value, _SIZE_B, "size", '"80GB" or "300MiB"'))


def _show_s(value: float) -> str:
    number, unit = (value * 1000, "ms") if value < 1 else (value, "s")
    return f"{number:.6f}".rstrip("0").rstrip(".") + unit


Seconds = Annotated[float, BeforeValidator(seconds), PlainSerializer(_show_s, return_type=str, when_used="json")]
Bytes = Annotated[int, BeforeValidator(size_bytes), PlainSerializer(lambda b: f"{b}B", return_type=str, when_used="json")]


class Settings(BaseModel):
    """One stage's settings: frozen, strict about names, documented by its field docstrings."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, validate_default=False)

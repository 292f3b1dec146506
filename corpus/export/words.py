"""The parts of a dataset card that only a person can write: read from one TOML file, put where the card asks for them.

They are part of what a release is made from, so the next release (after a takedown, say) has them again, and a replay
gives the same bytes. Never makes anything up: a part nobody wrote stays marked, and a marked card is not pushed.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path

from corpus.errors import UsageError

PARTS: dict[str, str] = {
    "about": "what the dataset is, in a few lines",
    "risks": "personal data, bias, and what may go wrong",
    "takedown": "where a rights holder writes to, and how fast you answer",
    "made_by": "why it was made, and by whom",
    "not_for": "what it should not be used for",
    "maintained_by": "who maintains it, and how long",
    "cite": "how it should be cited",
}
"""Keys of the file, and what stands there. All are text (Markdown)."""
PART_MAX = 20_000


def read_words(path: Path) -> dict[str, str]:
    """The parts a file gives. Raises UsageError for a file that cannot be read, an unknown key, or a part that is no text."""
    try:
        found = tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot be read: {error}", str(path), "write one key a part: " + ", ".join(PARTS)) from None
    for key, text in found.items():
        if key not in PARTS:
            raise UsageError(f"there is no part {key!r} of a card", str(path), "the parts are " + ", ".join(PARTS))
        if not isinstance(text, str) or len(text) > PART_MAX:
            raise UsageError(f"{key} must be text of at most {PART_MAX} characters", str(path), PARTS[key])
    return {key: text.strip() for key, text in found.items() if text.strip()}


def said(words: Mapping[str, str], part: str, otherwise: str) -> str:
    """A part of the card, or what stands there until somebody writes it."""
    return words.get(part, otherwise)

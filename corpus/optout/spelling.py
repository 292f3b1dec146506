"""Evident refusals in a wrong spelling: the words and labels that count as "no" although no spec defines them.

Only refusals are forgiven. A misspelt grant says nothing.
"""

from __future__ import annotations

REFUSING_WORDS = frozenset(
    {
        "no",
        "n",
        "false",
        "0",
        "?0",
        "none",
        "never",
        "off",
        "deny",
        "denied",
        "disallow",
        "disallowed",
        "forbid",
        "forbidden",
        "prohibited",
        "reserved",
    }
)
"""Values, lower case."""

_TRAINING_LABELS = frozenset(
    {
        "ai-train",
        "train-ai",
        "aitrain",
        "trainai",
        "ai-training",
        "training",
        "train",
        "ai",
        "genai",
        "train-genai",
        "genai-train",
        "ml",
        "tdm",
        "all",
    }
)

LEGACY_USAGE_LABELS = frozenset(
    {"tdm", "ai", "genai", "inference", "all", "bots", "train-genai", "ai-output", "ai-train", "ai-training", "train"}
)
"""Labels of earlier AIPREF drafts, and the swapped one: ignored by the draft, read as no by us when they refuse."""


def names_training(label: str) -> bool:
    """Whether a label (any case) evidently speaks about training."""
    return label.lower().replace("_", "-") in _TRAINING_LABELS

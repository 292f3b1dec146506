"""Signals that need a source of the operator's: a list, a table, a model, benchmark files. NULL where it is not configured.

The columns are always there, so that every file and every release has one schema; a policy that names one whose source is
not configured is refused at the start, never a rule that silently passes everything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from corpus.filter.signals import Signal


@dataclass(frozen=True, slots=True)
class Sourced:
    """A signal and the configuration key that its source stands under."""

    signal: Signal
    key: str


SOURCED: Final[dict[str, Sourced]] = {
    "url_list_hits": Sourced(
        Signal(
            "int64",
            "configured lists that hold the URL, its host or a domain above it",
            "UT1 blocklists; RefinedWeb",
            "datatrove looks at the host and its registered domain only, and misses a listed domain between the two",
        ),
        "filter.url_lists",
    ),
    "url_list_adult": Sourced(
        Signal("int64", "those of them in a UT1 class for adults (adult, porn, mixed_adult)", "UT1 blocklists"),
        "filter.url_lists",
    ),
    "url_list_names": Sourced(Signal("string", "their names, with a comma between", "corpus"), "filter.url_lists"),
    "unigram_logprob": Sourced(
        Signal(
            "double",
            "mean natural logarithm of the words' probabilities, in steps of a millionth per word; NULL without words",
            "datatrove (keeps above -10)",
            "unknown words count 1e-9 there as here; tokens are spaCy's there",
        ),
        "filter.unigrams",
    ),
    "quality_score": Sourced(
        Signal(
            "double",
            "the classifier's probability of the wanted class, four decimals",
            "fastText; DCLM (2024)",
            "a threshold belongs to one model and one pool: corpus quality train prints its own",
        ),
        "filter.quality_model",
    ),
    "contaminated_ngrams": Sourced(
        Signal(
            "int64",
            "runs of 12 words (or whole shorter benchmark texts, 8 words at least) that also stand in a benchmark file",
            "GPT-3; datatrove",
            "runs over line ends and punctuation; datatrove stops at the first hit",
        ),
        "filter.decontaminate",
    ),
    "contaminated_task": Sourced(
        Signal("string", "the benchmark file with most of these runs, by name", "datatrove"), "filter.decontaminate"
    ),
}

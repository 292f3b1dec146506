"""datatrove's filters, one rule at a time, by the names of our rules: what each test of fidelity and speed compares with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

OFF_REPETITION: Final[dict[str, Any]] = {
    "dup_line_frac": 0, "dup_para_frac": 0, "dup_line_char_frac": 0, "dup_para_char_frac": 0, "top_n_grams": (), "dup_n_grams": (),
}  # fmt: skip
OFF_QUALITY: Final[dict[str, Any]] = {
    "min_doc_words": 0, "max_doc_words": 0, "min_avg_word_length": 0, "max_avg_word_length": 0, "max_symbol_word_ratio": 0, "max_bullet_lines_ratio": 0,
    "max_ellipsis_lines_ratio": 0, "max_non_alpha_words_ratio": 0, "min_stop_words": 0,
}  # fmt: skip
OFF_C4: Final[dict[str, Any]] = {
    "min_num_sentences": -1, "filter_lorem_ipsum": False, "filter_curly_bracket": False,
}  # fmt: skip
OFF_FINEWEB: Final[dict[str, Any]] = {"line_punct_thr": 0, "short_line_thr": 9, "char_duplicates_ratio": 9, "new_line_ratio": 1e9}
REPETITION: Final[dict[str, dict[str, Any]]] = {
    "gopher_dup_paragraphs": {"dup_para_frac": 0.3},
    "gopher_dup_paragraph_chars": {"dup_para_char_frac": 0.2},
    "gopher_dup_lines": {"dup_line_frac": 0.3},
    "gopher_dup_line_chars": {"dup_line_char_frac": 0.2},
    **{f"gopher_top_{n}gram": {"top_n_grams": ((n, limit),)} for n, limit in ((2, 0.2), (3, 0.18), (4, 0.16))},
    **{f"gopher_dup_{n}gram": {"dup_n_grams": ((n, round(0.2 - n / 100, 2)),)} for n in range(5, 11)},
}
QUALITY: Final[dict[str, dict[str, Any]]] = {
    "gopher_words": {"min_doc_words": 50, "max_doc_words": 100_000},
    "gopher_word_length": {"min_avg_word_length": 3, "max_avg_word_length": 10},
    "gopher_bullets": {"max_bullet_lines_ratio": 0.9},
    "gopher_ellipsis_lines": {"max_ellipsis_lines_ratio": 0.3},
    "gopher_alphabetic": {"max_non_alpha_words_ratio": 0.8},
    "gopher_stop_words": {"min_stop_words": 2},
    "gopher_hashes+gopher_ellipses": {"max_symbol_word_ratio": 0.1},
}
C4: Final[dict[str, dict[str, Any]]] = {
    "c4_lorem_ipsum": {"filter_lorem_ipsum": True},
    "c4_curly": {"filter_curly_bracket": True},
    "c4_sentences": {"min_num_sentences": 5},
}
FINEWEB: Final[dict[str, dict[str, Any]]] = {
    "fineweb_end_marks": {"line_punct_thr": 0.12},
    "fineweb_short_lines": {"short_line_thr": 0.67},
    "fineweb_dup_line_chars": {"char_duplicates_ratio": 0.01},
    "fineweb_newlines": {"new_line_ratio": 0.3},
}

Drops = Callable[[str], bool]


def rules() -> dict[str, Drops]:
    """Our rule's name (two joined by `+` where datatrove has one switch for both) to: does datatrove drop this text?"""
    from datatrove.pipeline.filters import C4QualityFilter, FineWebQualityFilter, GopherQualityFilter, GopherRepetitionFilter

    found: dict[str, Drops] = {}
    for name, on in REPETITION.items():
        found[name] = _drops(GopherRepetitionFilter(**{**OFF_REPETITION, **on}))
    for name, on in QUALITY.items():
        found[name] = _drops(GopherQualityFilter(**{**OFF_QUALITY, **on}))
    for name, on in FINEWEB.items():
        found[name] = _drops(FineWebQualityFilter(**{**OFF_FINEWEB, **on}))
    for name, on in C4.items():
        found[name] = _drops(C4QualityFilter(**{**OFF_C4, **on}))
        open_name = name.replace("c4_", "c4_open_")
        found[open_name] = _drops(C4QualityFilter(**{**OFF_C4, **on, "filter_no_terminal_punct": False}))
    return found


def chain() -> list[Any]:
    """FineWeb's filters as its published pipeline runs them, in order."""
    from datatrove.pipeline.filters import C4QualityFilter, FineWebQualityFilter, GopherQualityFilter, GopherRepetitionFilter

    return [
        GopherRepetitionFilter(),
        GopherQualityFilter(),
        C4QualityFilter(filter_no_terminal_punct=False),
        FineWebQualityFilter(),
    ]


def _drops(rule: Any) -> Drops:
    from datatrove.data import Document

    def drops(text: str) -> bool:
        answer = rule.filter(Document(text=text, id="x"))
        return answer is not True

    return drops

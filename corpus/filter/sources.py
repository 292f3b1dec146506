"""The operator's sources for signals, together: what is configured, its digests for the stage key, and the columns it gives.

A `Sources` holds paths and travels to workers; each process opens it once. What is not configured gives NULL columns.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from corpus.errors import CorpusError, UsageError
from corpus.filter.decontaminate import Benchmarks, load_benchmarks
from corpus.filter.quality import load_model, scores
from corpus.filter.settings import FilterSettings
from corpus.filter.signals import SignalType
from corpus.filter.signals_sourced import SOURCED
from corpus.filter.tokens import Chunk
from corpus.filter.unigrams import Unigrams, load_unigrams
from corpus.filter.url_lists import ADULT, UrlLists, list_files, load_url_lists
from corpus.filter.url_lists import KEY as LISTS_KEY
from corpus.filter.user_signals import UserSignals, load_user_signals

if TYPE_CHECKING:  # a crawl checks its configuration too, and needs no Arrow
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Sources:
    """Absolute paths; `rules` as in `filter.rules`, with `base`, the folder of the configuration file."""

    url_lists: tuple[str, ...] = ()
    unigrams: str | None = None
    quality_model: str | None = None
    decontaminate: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    base: str = "."

    @classmethod
    def of(cls, settings: FilterSettings, base: Path) -> Sources:
        """From the configuration; relative paths are relative to `base`."""

        def path(name: str) -> str:
            return str((base / name).resolve())

        return cls(
            tuple(map(path, settings.url_lists)),
            path(settings.unigrams) if settings.unigrams else None,
            path(settings.quality_model) if settings.quality_model else None,
            tuple(map(path, settings.decontaminate)),
            settings.rules,
            str(base.resolve()),
        )

    @property
    def keys(self) -> frozenset[str]:
        """The configuration keys that are set."""
        named = {
            "filter.url_lists": self.url_lists,
            "filter.unigrams": self.unigrams,
            "filter.quality_model": self.quality_model,
            "filter.decontaminate": self.decontaminate,
            "filter.rules": self.rules,
        }
        return frozenset(key for key, value in named.items() if value)

    @property
    def own(self) -> dict[str, SignalType]:
        """Columns of the operator's own functions, by name."""
        loaded = load_user_signals(self.rules, self.base) if self.rules else ()
        return {name: kind for user in loaded for name, kind in sorted(user.columns.items())}

    def look(self) -> None:
        """Everything named is there, and the operator's functions load. Raises UsageError, the first of `faults`."""
        for fault in self.faults():
            raise fault

    def faults(self, *, deep: bool = False) -> list[CorpusError]:
        """What is wrong with each of them, all at once: something named is not there, or a function does not load. `deep`: contents
        are read as well."""
        single = {"filter.unigrams": self.unigrams, "filter.quality_model": self.quality_model}
        named = [(key, file) for key, file in single.items() if file] + [
            ("filter.decontaminate", path) for path in self.decontaminate
        ]
        looks: list[Callable[[], object]] = [partial(list_files, path) for path in self.url_lists]
        looks += [partial(_must_be_there, key, file) for key, file in named]
        looks += [partial(load_user_signals, (rule,), self.base) for rule in self.rules]
        found = _raised(looks)
        if deep:  # each alone, less what is missing anyway
            places = {fault.where for fault in found}
            alone = [
                *(replace(_NONE, url_lists=(path,)) for path in self.url_lists if f"{LISTS_KEY}: {path}" not in places),
                *(replace(_NONE, decontaminate=(f,)) for f in self.decontaminate if f"filter.decontaminate: {f}" not in places),
                *(replace(_NONE, unigrams=f) for f in [self.unigrams] if f and f"filter.unigrams: {f}" not in places),
                *(
                    replace(_NONE, quality_model=f)
                    for f in [self.quality_model]
                    if f and f"filter.quality_model: {f}" not in places
                ),
            ]
            found += _raised([partial(open_sources, source) for source in alone])
        if not found:  # and together: two lists of one name, two functions of one column
            found = _raised([partial(open_sources, self) if deep else lambda: self.own])
        return found

    def inputs(self) -> dict[str, str]:
        """Digest of everything configured, for a stage key: contents, and the names that reach a column."""
        facts: dict[str, object] = {}
        for path in self.url_lists:
            name, files = list_files(path)
            facts.setdefault("url_lists", []).append([name, *map(_digest, files)])  # type: ignore[attr-defined]
        if self.unigrams:
            facts["unigrams"] = _digest(Path(self.unigrams))
        if self.quality_model:
            facts["quality_model"] = _digest(Path(self.quality_model))
        if self.decontaminate:
            facts["decontaminate"] = sorted(
                [Path(path).stem, Path(path).suffix, _digest(Path(path))] for path in self.decontaminate
            )
        if self.rules:
            facts["rules"] = [[user.rule, dict(user.columns), user.digest] for user in load_user_signals(self.rules, self.base)]
        if not facts:
            return {}
        whole = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
        model = {"quality_model": str(facts["quality_model"])} if self.quality_model else {}
        return {"sources": whole, **model}


_NONE: Final = Sources()


def _must_be_there(key: str, file: str) -> None:
    if not Path(file).is_file():
        raise UsageError("no such file", f"{key}: {file}")


def _raised(calls: Iterable[Callable[[], object]]) -> list[CorpusError]:
    """What each of them raises."""
    found = []
    for call in calls:
        try:
            call()
        except CorpusError as error:
            found.append(error)
    return found


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@dataclass(frozen=True, slots=True)
class Opened:
    """Loaded sources of one process."""

    lists: UrlLists | None
    unigrams: Unigrams | None
    quality_model: str | None
    benchmarks: Benchmarks | None
    users: tuple[UserSignals, ...]

    def columns(self, urls: Sequence[str], chunk: Chunk, languages: Sequence[str]) -> dict[str, pa.Array]:
        """All sourced columns, and the operator's own, for the documents of a chunk at `urls`."""
        import pyarrow as pa

        found: dict[str, pa.Array] = {}
        if self.lists is not None:
            hits = self.lists.hits(urls)
            found["url_list_hits"] = pa.array([len(names) for names in hits], pa.int64())
            found["url_list_adult"] = pa.array([len(ADULT.intersection(names)) for names in hits], pa.int64())
            found["url_list_names"] = pa.array([",".join(names) or None for names in hits], pa.string())
        if self.unigrams is not None:
            column = self.unigrams.scores(chunk)
            found["unigram_logprob"] = pa.array(column.values, pa.float64(), mask=column.null)
        if self.quality_model is not None:
            found["quality_score"] = pa.array(scores(chunk.texts, self.quality_model), pa.float64())
        if self.benchmarks is not None:
            runs, tasks = self.benchmarks.find(chunk)
            found["contaminated_ngrams"] = pa.array(np.asarray(runs), pa.int64())
            found["contaminated_task"] = pa.array(tasks, pa.string())
        for name, sourced in SOURCED.items():
            found.setdefault(name, pa.nulls(len(chunk), pa.type_for_alias(sourced.signal.type)))
        for user in self.users:
            found |= user.measure(chunk.texts, languages)
        return found


@functools.cache
def open_sources(sources: Sources) -> Opened:
    """Load everything configured, once per process. Raises UsageError for what cannot be meant."""
    if sources.quality_model:
        load_model(sources.quality_model)
    return Opened(
        load_url_lists(sources.url_lists) if sources.url_lists else None,
        load_unigrams(sources.unigrams) if sources.unigrams else None,
        sources.quality_model,
        load_benchmarks(sources.decontaminate) if sources.decontaminate else None,
        load_user_signals(sources.rules, sources.base) if sources.rules else (),
    )


def list_hits(sources: Sources, signals: pa.Table) -> dict[str, int]:
    """Documents on each configured URL list, zeros included, of one segment's signals."""
    totals = {list_files(path)[0]: 0 for path in sources.url_lists}
    for names in signals["url_list_names"].drop_null().to_pylist():
        for name in names.split(","):
            totals[name] += 1
    return totals

"""corpus: turns the web into training data, and proves row by row that it was polite and allowed.

The public names below load on first use (PEP 562), so that `import corpus` stays fast and a process that only
fetches never pays for what only a release needs.
"""

from __future__ import annotations

from typing import Any

_HOMES = {
    "Corpus": "corpus.app.corpus",
    "open": "corpus.app.corpus",
    "load_config": "corpus.config.load",
    "canonical_url": "corpus.url.canonical",
    "extract": "corpus.filter.extract",
    "detect_language": "corpus.filter.language",
    "measure": "corpus.filter.measure",
    "minhash": "corpus.filter.signatures",
    "to_datasketch": "corpus.filter.signatures",
    "shingles": "corpus.filter.signatures",
    "cluster": "corpus.filter.clusters",
    "consent": "corpus.optout.consent",
    "Access": "corpus.model",
    "Use": "corpus.model",
    "Gate": "corpus.model",
    "Consent": "corpus.model",
    "Evidence": "corpus.model",
    "CorpusError": "corpus.errors",
    "__version__": "corpus.version",
}

__all__ = sorted(_HOMES)  # noqa: PLE0605  (names are strings; the table above is the one list of them)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'corpus' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

"""The quality classifier: a fastText model whose probability of the wanted class is a signal; and its training.

Training takes texts of both classes from files, is seeded and single-threaded (the same files give the same bytes), and
holds back every tenth text to measure and to find the threshold: the score that the given share of the unwanted pool does
not reach. Scores are rounded, so that the last bits of a sum never reach a file. The model reads the first
`SEEN` characters of a text, in lower case, as one line.
"""

from __future__ import annotations

import functools
import hashlib
import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from corpus.errors import UsageError

KEY: Final = "filter.quality_model"
WANTED: Final = "__label__hq"
UNWANTED: Final = "__label__cc"
"""Labels of DCLM's published classifier, so that it can be used as it is."""
SEEN: Final = 10_000
_PLACES = 4
_HELD_BACK = 10
_TRAINING: Final = {
    "lr": 0.1,
    "dim": 32,
    "ws": 5,
    "epoch": 5,
    "minCount": 1,
    "wordNgrams": 2,
    "bucket": 1 << 18,
    "thread": 1,
    "seed": 1,
    "verbose": 0,
}
"""DCLM's, but smaller vectors and table (about 40 MB in place of 800) and one seeded thread."""
_SHARED_MAX, _APART = 0.02, 1.5
"""More texts on both sides than this share of the smaller one, or less than so many times as many wanted ones kept, is warned about."""
_FEWEST = 20
"""Texts of each class without which there is nothing to learn or to hold back."""


@dataclass(frozen=True, slots=True)
class Trained:
    """What came out: counts, the threshold at `quantile` of the held-back pool, the held-back accuracy at that threshold."""

    model: str
    digest: str
    positives: int
    negatives: int
    quantile: float
    threshold: float
    kept_of_positives: float
    kept_of_negatives: float
    shared: int = 0
    """Texts that stand on both sides."""

    def warnings(self) -> list[str]:
        """What makes the model worth little, in sentences."""
        said = []
        if self.shared > _SHARED_MAX * min(self.positives, self.negatives):
            said.append(
                f"{self.shared} texts are both wanted and in the pool ({self.positives} and {self.negatives}): nothing can be learned from those"
            )
        if self.kept_of_positives < _APART * self.kept_of_negatives:
            said.append(
                f"the score hardly tells the two apart: of texts held back it keeps {self.kept_of_positives:.1%} of the wanted and "
                f"{self.kept_of_negatives:.1%} of the pool"
            )
        return said

    def rule(self) -> str:
        """The rule for a policy file."""
        return f'[rules.quality]\nsignal = "quality_score"\nmin = {self.threshold}\n'


def as_line(text: str) -> str:
    """A text as the model reads it, at training and at scoring alike."""
    return " ".join(text[:SEEN].encode("utf-8", "ignore").decode().lower().replace("\0", " ").split())


@functools.cache
def load_model(path: str) -> Any:
    """The model, loaded once per process. Raises UsageError when it is missing, no classifier, or lacks the wanted class."""
    import fasttext

    where = Path(path)
    if not where.is_file():
        raise UsageError("no such model", f"{KEY}: {path}", "train one with corpus quality train")
    fasttext.FastText.eprint = lambda *_: None  # it warns on stderr about its own return type
    try:
        model = fasttext.load_model(str(where))
        labels = model.get_labels()
    except (ValueError, RuntimeError) as error:
        raise UsageError(f"no fastText classifier: {error}", f"{KEY}: {path}") from error
    if WANTED not in labels:
        hint = f"the wanted class is called {WANTED}: train with corpus quality train, or rename the label"
        raise UsageError(f"the model has no such class; it has {', '.join(labels[:5])}", f"{KEY}: {path}", hint)
    return model


def scores(texts: Sequence[str], path: str) -> NDArray[np.float64]:
    """The probability of the wanted class for each text, rounded; 0 for an empty text."""
    labels, values = load_model(path).predict([as_line(text) for text in texts], k=-1)
    result = np.zeros(len(texts))
    for index, (names, shares) in enumerate(zip(labels, values, strict=True)):
        if WANTED in names:
            result[index] = round(min(float(shares[list(names).index(WANTED)]), 1.0), _PLACES)
    return result


def train(positive: Sequence[Path], negative: Sequence[Path], out: Path, *, quantile: float) -> Trained:
    """Train, write `out` and `out`.json beside it. Raises UsageError for files without texts and for an `out` that exists or has no
    folder."""
    if out.exists():
        raise UsageError("the file is there already", str(out), "name another with --out")
    if not out.absolute().parent.is_dir():
        raise UsageError("there is no such folder", str(out.parent), "make it first, or name another file with --out")
    wanted, pool = (
        list(dict.fromkeys(as_line(t) for file in files for t in texts_of(file) if t.strip())) for files in (positive, negative)
    )
    for texts, option in ((wanted, "--positive"), (pool, "--negative")):
        if len(texts) < _FEWEST:
            raise UsageError(
                f"{len(texts)} different texts; at least {_FEWEST} are needed",
                option,
                ".txt with a text a line, .jsonl or .parquet with `text`",
            )
    model = _fit([*_lines(WANTED, wanted), *_lines(UNWANTED, pool)])
    model.save_model(str(out))
    good, rest = (scores(texts[::_HELD_BACK], str(out)) for texts in (wanted, pool))
    threshold = round(float(np.quantile(rest, quantile, method="higher")), _PLACES)
    shared = len(set(wanted).intersection(pool))
    done = Trained(
        str(out), hashlib.sha256(out.read_bytes()).hexdigest(), len(wanted), len(pool), quantile, threshold,
        round(float((good >= threshold).mean()), _PLACES), round(float((rest >= threshold).mean()), _PLACES),
        shared,
    )  # fmt: skip
    out.with_name(out.name + ".json").write_text(json.dumps(asdict(done), indent=2) + "\n", "utf-8")
    return done


def _lines(label: str, texts: Sequence[str]) -> list[str]:
    return [f"{label} {text}" for index, text in enumerate(texts) if index % _HELD_BACK]


def _fit(lines: list[str]) -> Any:
    """Texts of both classes in an order that only their content decides: fastText learns in file order."""
    import fasttext

    lines.sort(key=lambda line: hashlib.sha256(line.encode()).digest())
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".txt") as file:
        file.write("\n".join(lines) + "\n")
        file.flush()
        return fasttext.train_supervised(input=file.name, **_TRAINING)


def texts_of(file: Path) -> Iterator[str]:
    """Texts of a .txt (one a line), .jsonl or .parquet file (column `text`). Raises UsageError when there are none to read."""
    try:
        if file.suffix == ".parquet":
            import pyarrow.parquet as pq

            for batch in pq.ParquetFile(file).iter_batches(columns=["text"], batch_size=1024):
                yield from (text for text in batch.column(0).to_pylist() if text)
            return
        with file.open(encoding="utf-8") as lines:
            for line in lines:
                if file.suffix != ".jsonl":
                    yield line
                elif line.strip():
                    yield str(json.loads(line)["text"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(
            f"cannot be read: {error!r}", str(file), ".txt with a text a line, .jsonl or .parquet with `text`"
        ) from error

"""The quality classifier: the same files give the same model, the threshold is the quantile, and the score is a signal."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest

from corpus.errors import UsageError
from corpus.filter.quality import load_model, scores, train
from tests.demo_corpus import corpus_cli

_GOOD = ["theorem", "proof", "lemma", "integral", "matrix", "vector", "space", "field", "group", "ring", "module", "tensor"]
_POOL = ["buy", "cheap", "offer", "click", "shop", "sale", "discount", "cart", "deal", "price", "free", "shipping"]


def _texts(path: Path, words: list[str], number: int) -> Path:
    rng = random.Random(path.name)
    lines = [" ".join(rng.choices([*words, "the", "of", "and", "a"], k=40)) for _ in range(number)]
    path.write_text(
        "\n".join(json.dumps({"text": line}) for line in lines) if path.suffix == ".jsonl" else "\n".join(lines), "utf-8"
    )
    return path


def test_training_is_repeatable_and_its_threshold_is_a_quantile(tmp_path: Path) -> None:
    """Two trainings give the same bytes; the threshold drops the asked share of the pool; the digest is the file's."""
    good, pool = _texts(tmp_path / "good.jsonl", _GOOD, 300), _texts(tmp_path / "pool.txt", _POOL, 400)
    first = train([good], [pool], tmp_path / "one.bin", quantile=0.8)
    again = train([good], [pool], tmp_path / "two.bin", quantile=0.8)
    assert first.digest == again.digest
    assert first.threshold == again.threshold
    assert 0.1 <= first.kept_of_negatives <= 0.3
    assert first.kept_of_positives > 0.9
    assert json.loads((tmp_path / "one.bin.json").read_text("utf-8"))["digest"] == first.digest
    fine, poor, empty = scores(["lemma: the proof of a theorem", "buy cheap cheap, free shipping!\nclick", ""], first.model)
    assert fine > first.threshold > poor
    assert all(round(value, 4) == value for value in (fine, poor, empty))
    with pytest.raises(UsageError, match="there already"):
        train([good], [pool], tmp_path / "one.bin", quantile=0.8)


def test_the_batch_changes_no_score(tmp_path: Path) -> None:
    """A text scores the same alone and among others, NULs, surrogates and line ends included."""
    good, pool = _texts(tmp_path / "good.txt", _GOOD, 60), _texts(tmp_path / "pool.txt", _POOL, 60)
    model = train([good], [pool], tmp_path / "m.bin", quantile=0.5).model
    texts = ["theorem\nproof\0lemma", "\ud800 sale", "", "x" * 50_000, "price " * 5000]
    assert scores(texts, model).tolist() == [scores([text], model)[0] for text in texts]


def test_the_verb_trains_and_prints_the_rule(tmp_path: Path) -> None:
    """`corpus quality train` writes the model and gives threshold and digest; too few texts are a usage error."""
    good, pool = _texts(tmp_path / "good.txt", _GOOD, 60), _texts(tmp_path / "pool.txt", _POOL, 60)
    said = corpus_cli(
        "quality", "train", "--positive", good, "--negative", pool, "--out", tmp_path / "q.bin", "--quantile", "0.5", "--json"
    )
    assert said.code == 0, said.err
    assert said.json["positives"] == 60
    assert (tmp_path / "q.bin").is_file()
    few = _texts(tmp_path / "few.txt", _GOOD, 3)
    assert corpus_cli("quality", "train", "--positive", few, "--negative", pool, "--out", tmp_path / "r.bin").code == 2
    assert not (tmp_path / "r.bin").exists()


def test_a_model_of_other_classes_is_refused(tmp_path: Path) -> None:
    """A language model is no quality model: its class names give it away before anything is measured."""
    from importlib.resources import files

    with pytest.raises(UsageError, match="__label__hq"):
        load_model(str(files("corpus.filter").joinpath("models/lid.176.ftz")))
    assert np.__version__


def test_a_model_goes_into_a_folder_that_is_there(tmp_path: Path) -> None:
    """A slip in --out is refused before anything is read, and makes no folder."""
    text = tmp_path / "t.txt"
    text.write_text("one\n", "utf-8")
    said = corpus_cli("quality", "train", "--positive", text, "--negative", text, "--out", tmp_path / "none" / "q.bin")
    assert (said.code, "no such folder" in said.err) == (2, True)
    assert list(tmp_path.iterdir()) == [text]


def test_classes_that_are_the_same_are_warned_about(tmp_path: Path) -> None:
    """The same file on both sides, or half of it, teaches nothing: said on stderr and in the JSON; two that differ say nothing."""
    good, pool = _texts(tmp_path / "good.txt", _GOOD, 60), _texts(tmp_path / "pool.txt", _POOL, 60)
    same = corpus_cli("quality", "train", "--positive", good, "--negative", good, "--out", tmp_path / "same.bin", "--json")
    assert same.code == 0
    assert "warning: 60 texts are both wanted and in the pool" in same.err
    assert "hardly tells the two apart" in same.err
    assert len(same.json["warnings"]) == 2
    half = tmp_path / "half.txt"
    half.write_text("".join(good.read_text("utf-8").splitlines(keepends=True)[:30]) + pool.read_text("utf-8"), "utf-8")
    told = corpus_cli("quality", "train", "--positive", good, "--negative", half, "--out", tmp_path / "half.bin")
    assert "30 texts are both wanted" in told.err
    apart = corpus_cli("quality", "train", "--positive", good, "--negative", pool, "--out", tmp_path / "ok.bin", "--json")
    assert apart.json["warnings"] == []
    assert "warning" not in apart.err

"""What happens to a text on its way out: cuts, tokens, and its escape into cards and tables."""

from __future__ import annotations

import csv
import io

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus.errors import UsageError
from corpus.export.domains import domains_csv, share
from corpus.export.edits import cut, cut_column
from corpus.export.escape import Ours, csv_cell, markdown, plain, yaml
from corpus.export.summary import DomainRow
from corpus.export.tokens import ByteBpe, token_counter

spans = st.lists(st.tuples(st.integers(-2, 30), st.integers(-2, 30)), max_size=8)


@given(st.text(alphabet="abc", max_size=25), spans, st.randoms(use_true_random=False))
def test_a_cut_removes_exactly_the_covered_characters(text, given_spans, random):
    """In one line: what no span covers stays in order, however spans overlap, repeat, or run past the text."""
    covered = {i for start, end in given_spans for i in range(max(start, 0), min(end, len(text)))}
    expected = "".join(char for i, char in enumerate(text) if i not in covered)
    shuffled = list(given_spans)
    random.shuffle(shuffled)
    assert cut(text, given_spans) == cut(text, shuffled) == expected


def test_a_line_that_is_cut_whole_takes_its_newline_along():
    """No empty lines are left behind; a cut inside a line leaves its newline."""
    assert cut("one\ntwo\nthree", [(4, 7)]) == "one\nthree"
    assert cut("one\ntwo\nthree", [(0, 3), (4, 7)]) == "three"
    assert cut("one\ntwo two\nthree", [(4, 7)]) == "one\n two\nthree"
    assert cut("write to 😀 a@b.example now", [(11, 22)]) == "write to 😀  now"


def test_only_rows_with_spans_are_edited():
    """A column keeps its other rows, nulls included."""
    texts, ids = pa.chunked_array([["abc", None], ["def"]]), pa.chunked_array([["1", "2"], ["3"]])
    assert cut_column(texts, ids, {"3": [(0, 1)]}).to_pylist() == ["abc", None, "ef"]
    assert cut_column(texts, ids, {}).to_pylist() == ["abc", None, "def"]


def _merges(path, *lines: str):
    path.write_text("#version: 0.2\n" + "\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_merges_are_applied_best_rank_first_then_leftmost(tmp_path):
    """aaa with a+a is two tokens, not one and a half; a better rank wins over an earlier place."""
    counter = ByteBpe("t", _merges(tmp_path / "m.bpe", "b c", "a b", "a a"))
    assert counter.count(["aaa", "aaaa", "abc", "", "x", "ab ab"]) == [2, 2, 2, 0, 1, 3]
    assert counter.name.startswith("t sha256:")


def test_long_runs_are_counted_in_bounded_time(tmp_path):
    """A line of two hundred thousand letters costs a moment, and is counted right."""
    counter = ByteBpe("t", _merges(tmp_path / "m.bpe", "a a", "aa aa"))
    assert counter.count(["a" * 200_000]) == [50_000]


def test_gpt2_counts_what_gpt2_counts():
    """Known GPT-2 counts, where the merges are installed."""
    counter = token_counter("gpt2")
    assert counter is not None
    assert counter.count(["That's my beautiful and sweet string", "Hello, world! 你好 😀\n\n  x"]) == [7, 14]


def test_tokenizers_that_cannot_be_had_are_usage_errors(tmp_path):
    """A missing or senseless file is refused before any work; `none` counts nothing."""
    assert token_counter("none") is None
    for name in (str(tmp_path / "missing"), str(_merges(tmp_path / "bad", "a b c")), str(_merges(tmp_path / "empty"))):
        with pytest.raises(UsageError):
            token_counter(name)


HOSTILE = '<script>alert(1)</script>|[x](javascript:y) `a` *b* _c_ # d\n\n---\n=cmd()\u202eevil\x00\ud800www.bad.example "q": {e}'


def test_markdown_renders_hostile_text_as_itself():
    """No tag, link, table cell, heading, line break, autolink or direction mark survives."""
    shown = markdown(HOSTILE)
    for harmful in ("<", ">", "|", "\n", "\u202e", "\x00", "\ud800", "[x](", "www.", " `a`", " *b*"):
        assert harmful not in shown
    shown.encode("utf-8")
    assert markdown(Ours("a `b` | c")) == "a `b` | c"


@given(st.text(max_size=60))
def test_no_text_breaks_a_line_of_yaml_or_csv(text):
    """A YAML scalar is one line and reads back; a CSV cell is one cell and never a formula."""
    import json

    scalar = yaml(text)
    assert "\n" not in scalar
    assert json.loads(scalar) == plain(text)
    cell = csv_cell(text)
    assert not cell.startswith(("=", "+", "-", "@", "\t", "\r"))
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow([cell, 1])
    assert list(csv.reader(io.StringIO(out.getvalue()))) == [[cell, "1"]]


def test_domains_are_listed_with_shares_by_integers():
    """Shares have six digits and cumulate to one; a hostile domain is no formula."""
    text = domains_csv([DomainRow("a.example", 2, 2, "x", "y"), DomainRow('=HYPERLINK("http://x")', 1, 1, "x", "y")])
    assert text.splitlines()[1:] == [
        "a.example,2,2,0.666666,0.666666,x,y",
        '"\'=HYPERLINK(""http://x"")",1,1,0.333333,1.000000,x,y',
    ]
    assert share(1, 0) == "0.000000"

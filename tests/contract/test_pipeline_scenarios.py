"""The fifteen scenarios that break text pipelines: where each is tested, and those that need a test of their own.

`SCENARIOS` names tests as `file::function`; it is checked, so a renamed test cannot leave a scenario uncovered.
"""

from __future__ import annotations

import ast
import datetime
import time
from pathlib import Path

import pyarrow as pa
import pytest

from corpus.export.ports import FRONTIER
from corpus.filter.measure import measure, measured_chunks
from corpus.filter.signatures import minhash, shingles
from corpus.filter.tokens import MEASURED
from tests import release_kit as rk
from tests.demo_corpus import DemoCorpus, corpus_cli
from tests.make_families import DAY, Page

TESTS = Path(__file__).resolve().parents[1]
SCENARIOS: dict[str, tuple[str, ...]] = {
    "1 one, three and sixteen workers, and kill -9: the same bytes": (
        "laws/test_law_crawl.py::test_any_number_of_workers_and_a_killed_export_give_the_same_bytes",
        "laws/test_export_laws.py::test_shards_do_not_depend_on_how_pages_were_spread_over_segments",
        "unit/test_clusters_snapshot.py::test_sharding_order_and_budget_change_no_byte",
        "unit/test_filter_map.py::test_order_of_captures_changes_no_byte",
    ),
    "2 something changes between two steps: refused, or made again": (
        "contract/test_pipeline_scenarios.py::test_inputs_that_changed_between_two_steps_are_refused_or_made_again",
        "contract/test_export_release.py::test_clusters_of_another_snapshot_are_refused",
        "unit/test_clusters_snapshot.py::test_families_that_do_not_belong_together_are_refused",
        "unit/test_filter_sources.py::test_every_source_is_part_of_the_stage_key",
    ),
    "3 three copies of an indexed document: all of them named": ("unit/test_clusters_snapshot.py::test_incremental_is_a_rebuild_and_a_delete_is_fewer_rows",),
    "4 four copies of a three-word page": ("unit/test_clusters_snapshot.py::test_short_exact_copies_are_duplicates",),
    "5 tables that differ in digits": ("unit/test_clusters_cluster.py::test_tables_that_differ_in_their_digits_are_not_duplicates",),
    "6 a thousand pages of one template, and chains": (
        "unit/test_clusters_cluster.py::test_a_shared_template_joins_only_true_copies",
        "unit/test_clusters_cluster.py::test_likeness_is_not_handed_on",
        "laws/test_clusters_laws.py::test_every_member_is_verified_against_one_centre",
    ),
    "7 the kept copy is taken down": (
        "contract/test_export_consent.py::test_a_takedown_promotes_a_copy_that_is_still_allowed",
        "contract/test_diff_releases.py::test_a_takedown_is_named",
        "contract/test_frontier_store.py::test_a_takedown_is_final",
    ),
    "8 robots.txt refuses later": ("sim/test_optout_change.py::",),
    "9 charsets by header, meta and byte order mark": ("unit/test_filter_extract.py::test_charset_evidence_is_ranked_and_recorded",),
    "10 a Chinese article under rules made for English": ("unit/test_filter_lines.py::test_a_chinese_article_passes_the_rules_made_for_english",),
    "11 vowel signs differ, normal forms do not": (
        "laws/test_filter_signatures.py::test_vowel_signs_and_digits_count",
        "laws/test_filter_signatures.py::test_normal_forms_do_not_matter",
    ),
    "12 empty, endless and hostile": (
        "unit/test_filter_extract.py::test_hostile_bodies_end_in_an_outcome_in_bounded_time",
        "contract/test_pipeline_scenarios.py::test_endless_texts_are_measured_in_bounded_time_and_memory",
        "sim/test_badpages_run.py::",
    ),
    "13 a language that the labels do not know": (
        "unit/test_filter_policy.py::test_mistakes_are_usage_errors_with_file_and_line",
        "contract/test_pipeline_scenarios.py::test_a_language_is_named_in_any_spelling_or_refused_at_the_start",
        "unit/test_filter_lines.py::test_a_language_is_named_in_any_spelling_and_never_unknown",
    ),
    "14 a late value and a shard of no rows": ("contract/test_export_release.py::test_empty_and_half_empty_shards_have_the_full_schema",),
    "15 one URL fetched five times": (
        "contract/test_pipeline_scenarios.py::test_a_url_fetched_five_times_is_one_row_or_none",
        "unit/test_clusters_snapshot.py::test_the_latest_visit_stands_for_a_url",
        "contract/test_export_consent.py::test_pages_that_are_gone_follow_the_setting",
    ),
    "+ a benchmark wrapped at eight words": ("unit/test_filter_sources.py::test_a_benchmark_answer_is_found_however_it_is_wrapped",),
    "+ masking does not depend on the order of documents": (
        "laws/test_filter_signals.py::test_the_batch_changes_no_signal",
        "contract/test_export_release.py::test_spans_of_the_policys_kinds_are_cut_before_tokens_are_counted",
    ),
    "+ IPv6 and private IPv4": ("unit/test_filter_pii.py::test_personal_data_is_found", "unit/test_filter_pii.py::test_other_numbers_are_left_alone"),
}  # fmt: skip


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_every_scenario_names_tests_that_exist(scenario: str) -> None:
    """Each of the fifteen, and the extra ones, is covered by tests under the names given here."""
    for name in SCENARIOS[scenario]:
        file, _, function = name.partition("::")
        tree = ast.parse((TESTS / file).read_text("utf-8"))
        found = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}
        assert function in found if function else found, name


def test_the_fifteen_are_all_there() -> None:
    """No number is missing."""
    numbers = [scenario.split()[0] for scenario in SCENARIOS]
    assert [n for n in numbers if n != "+"] == [str(n) for n in range(1, 16)]


def test_inputs_that_changed_between_two_steps_are_refused_or_made_again(demo_corpus: DemoCorpus, tmp_path: Path) -> None:
    """Another list after `process`: export refuses and names the command. Another threshold: clusters of its own, not the old ones."""
    folder = demo_corpus.copy(tmp_path / "corpus")
    config = folder / "corpus.toml"
    (folder / "bad.txt").write_text("nobody.example\n", "utf-8")
    changed = ("--set", 'filter.url_lists=["bad.txt"]', "--set", "export.name=v2")
    refused = corpus_cli("export", "-c", config, *changed)
    assert refused.code == 1
    assert "run corpus process" in refused.err
    assert corpus_cli("process", "-c", config, *changed).code == 0
    assert corpus_cli("export", "-c", config, *changed).code == 0
    before = {path.parent.name for path in folder.glob("snapshots/*/clusters.parquet")}
    assert corpus_cli("export", "-c", config, *changed[:2], "--set", "dedup.threshold=0.95", "--set", "export.name=v3").code == 0
    assert {path.parent.name for path in folder.glob("snapshots/*/clusters.parquet")} > before
    other = corpus_cli("export", "-c", config, *changed, "--name", "v2", "--set", "dedup.threshold=0.9")
    assert other.code == 1  # v2 was made with another threshold
    assert "another export.name" in other.err


@pytest.mark.parametrize("unit", ["a\n", "{\n", ". ", "a", "word ", "# ", "x.\nbad line\n", "\u0e01\u0e33"])
def test_endless_texts_are_measured_up_to_a_limit(unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One row for any length: what was left out is said, and the signature is that of the part that was seen."""
    monkeypatch.setattr("corpus.filter.tokens.MEASURED", 20_000)
    text = unit * (50_000 // len(unit))
    (part,) = measured_chunks([text], ["en"])
    seen = len(part.chunk.texts[0])
    assert seen <= 20_000
    assert (int(part.signals["chars"].values[0]), int(part.signals["unmeasured_chars"].values[0])) == (
        len(text),
        len(text) - seen,
    )
    assert (minhash([text]) == part.minhash).all()
    assert len(shingles([text])[0]) == part.shingle_count[0]


def test_endless_texts_are_measured_in_bounded_time_and_memory() -> None:
    """Five million characters of the worst kind, a line each second one: a few spans, and the time of one million."""
    text = "a\n" * (5 * MEASURED // 2)
    begin = time.process_time()
    (part,) = measured_chunks([text], ["en"])
    assert time.process_time() - begin < 20  # about one second on an idle machine; 17 s and 2.4 GB before there was a limit
    assert len(part.spans[0]) < 10
    assert int(part.signals["unmeasured_chars"].values[0]) == 4 * MEASURED


def test_personal_data_is_found_past_the_measured_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a policy cuts for a person's sake is found in the whole text, wherever the pieces end."""
    monkeypatch.setattr("corpus.filter.tokens.MEASURED", 20_000)
    filler = "plain words of no interest. " * (20_000 // 28)
    text = filler + "write to first@person.example now " + filler + filler + "or second@person.example."
    (part,) = measured_chunks([text], ["en"])
    emails = [text[span.start : span.end] for span in part.spans[0] if span.kind == "email"]
    assert emails == ["first@person.example", "second@person.example"]
    assert int(part.signals["email_count"].values[0]) == 2
    assert measure(["short"], ["en"])["unmeasured_chars"].to_pylist() == [0]


def test_a_language_is_named_in_any_spelling_or_refused_at_the_start(demo_corpus: DemoCorpus, tmp_path: Path) -> None:
    """`english` means `en` and keeps what `en` keeps; a language nobody knows exits 2 before anything is done."""
    folder = demo_corpus.copy(tmp_path / "corpus")
    rows = []
    for name, spelling in (("a", "english"), ("b", "en")):
        said = corpus_cli(
            "export", "-c", folder / "corpus.toml", "--set", f'corpus.languages=["{spelling}"]', "--set", f"export.name={name}"
        )
        assert said.code == 0, said.err
        rows.append(corpus_cli("sql", "-c", folder / "corpus.toml", "SELECT count(*) FROM records", "--json").json["rows"][0][0])
    assert rows[0] == rows[1] > 0
    unknown = corpus_cli("export", "-c", folder / "corpus.toml", "--set", 'corpus.languages=["englsh"]', "--set", "export.name=c")
    assert unknown.code == 2
    assert "corpus.languages" in unknown.err
    assert not (folder / "releases" / "c").exists()


@pytest.mark.parametrize(("gone", "kept"), [("drop", []), ("keep", ["half rewritten"])])
def test_a_url_fetched_five_times_is_one_row_or_none(tmp_path: Path, gone: str, kept: list[str]) -> None:
    """The same, not modified, another date, half rewritten, gone: one row of the newest version, or none; any sharding gives it."""
    url, first = "https://www.a.example/page", rk.text(1)
    half = " ".join([*rk.words(1)[:60], *rk.words(2)[:60]])
    visits = [Page(url, first, day=1), Page(url, first, day=2), Page(url, first + " 2026-11-03", day=3), Page(url, half, day=4)]
    frontier = pa.Table.from_pylist([{"url": url, "gone": True, "visited_at": DAY + datetime.timedelta(days=5)}], schema=FRONTIER)
    texts = {"half rewritten": half}
    released = []
    for name, spread in (("one", lambda at: 0), ("four", lambda at: at)):
        kit = rk.Kit(tmp_path / name, inputs={"frontier": frontier}, spread=spread)
        kit.options = rk.replace(kit.options, gone=gone)  # type: ignore[arg-type]
        released.append(rk.rows(kit.release(visits))["text"].to_pylist())
    assert released[0] == released[1] == [texts[name] for name in kept]

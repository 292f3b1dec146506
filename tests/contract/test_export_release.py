"""A release as its users meet it: files, columns, election, consent, takedowns, refusals to build."""

from __future__ import annotations

import csv
import datetime
import hashlib
import json
from dataclasses import replace

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from corpus.errors import CorpusError, StoreError
from corpus.export import build
from corpus.export.schema import STATISTICS, release_schema
from tests import release_kit as rk
from tests.make_families import Page


@pytest.fixture
def kit(tmp_path):
    return rk.Kit(tmp_path)


def _day(day: int) -> datetime.datetime:
    return datetime.datetime(2026, 11, day)  # noqa: DTZ001  (UTC without a zone, as in the families)


def test_the_folder_is_whole_and_says_what_it_holds(kit):
    """Every file of the contract is there, the manifest lists each with its digest, and nothing else lies about."""
    kit.inputs = {"config": 'name = "x"\n', "identity": {"config": "c" * 64, "code": "1"}}
    result = kit.release([Page(f"https://h{i}.example.com/", rk.text(i)) for i in range(5)])
    names = {str(path.relative_to(result.folder)) for path in result.folder.rglob("*") if path.is_file()}
    side = {"README.md", "croissant.json", "domains.csv", "TOMBSTONES.parquet", "corpus.toml"}
    shard = "data/crawl_id=2026-11/train-00000-of-00001.parquet"
    assert names == side | {"manifest.json", shard}
    manifest = json.loads((result.folder / "manifest.json").read_text())
    assert manifest == result.manifest
    assert set(manifest["files"]) == side
    listed = {name: entry["sha256"] for name, entry in manifest["files"].items()} | {
        s["path"]: s["sha256"] for s in manifest["shards"]
    }
    for name, digest in listed.items():
        assert hashlib.sha256((result.folder / name).read_bytes()).hexdigest() == digest
    assert manifest["rows"] == manifest["shards"][0]["rows"] == 5
    assert manifest["identity"]["snapshot"] == "d" * 64
    assert [path.name for path in result.folder.parent.iterdir()] == ["v1"]


def test_a_row_says_where_it_comes_from(kit):
    """All columns of a row, filled from families, cluster, consent and policy."""
    kit.tokens = rk.Lengths()
    page = Page("https://a.example.com/", rk.text(1), day=1.5, extra={"warc_offset": 7, "title": "A & B"})
    row = rk.rows(kit.release([page, Page("https://b.example.com/", rk.text(1))])).to_pylist()[0]
    source = page.row()
    assert {name: row[name] for name in ("id", "url", "text", "title", "warc_offset", "url_id", "text_sha256")} == {
        name: source[name] for name in ("id", "url", "text", "title", "warc_offset", "url_id", "text_sha256")
    }
    assert row["dump"] == row["crawl_id"] == "2026-11"
    assert row["date"] == "2026-11-02T12:00:00Z"
    assert row["token_count"] == 120
    assert row["minhash_cluster_size"] == 2
    assert row["consent"] == {"access": "yes", "use": "unknown", "evidence_digest": "e" * 64, "checked_at": rk.CHECKED}
    assert row["signals"] == {"chars": len(source["text"]), "words": 120, "quality_score": 0.5}
    assert row["policy_digest"] == kit.policy.digest


def test_without_a_tokenizer_the_count_is_null(kit):
    """`token_count` is null, not zero, and has its type."""
    table = rk.rows(kit.release([Page("https://a.example.com/", rk.text(1))]))
    assert table["token_count"].null_count == 1
    assert table.schema.field("token_count").type == pa.int64()


def test_shards_are_made_for_readers(kit):
    """zstd, sorted rows, page index, a Bloom filter on id, dictionaries only where values repeat, the schema in each."""
    result = kit.release([Page(f"https://h{i % 7}.d{i % 3}.example/{i}", rk.text(i)) for i in range(60)])
    path = result.folder / result.manifest["shards"][0]["path"]
    file = pq.ParquetFile(path)
    assert file.schema_arrow.equals(release_schema(rk.SIGNALS), check_metadata=True)
    group = file.metadata.row_group(0)
    columns = {group.column(i).path_in_schema: group.column(i) for i in range(group.num_columns)}
    assert {column.compression for column in columns.values()} == {"ZSTD"}
    assert all(column.has_offset_index for column in columns.values())
    assert {name for name, column in columns.items() if column.has_column_index} == set(STATISTICS)
    assert any("DICT" in encoding for encoding in columns["domain"].encodings)
    assert not any("DICT" in encoding for encoding in columns["text"].encodings + columns["id"].encodings)
    rows = [(r["domain"], r["url"], r["id"]) for r in file.read(columns=["domain", "url", "id"]).to_pylist()]
    assert rows == sorted(rows)
    [probe] = duckdb.sql(
        f"SELECT count(*) FROM parquet_bloom_probe('{path}', 'id', '{rows[0][2]}') WHERE NOT bloom_filter_excludes"
    ).fetchall()
    assert probe[0] == 1
    [missing] = duckdb.sql(
        f"SELECT count(*) FROM parquet_bloom_probe('{path}', 'id', 'no such id') WHERE NOT bloom_filter_excludes"
    ).fetchall()
    assert missing[0] == 0


def test_empty_and_half_empty_shards_have_the_full_schema(kit):
    """No rows at all still make one shard; a column that is null throughout keeps its type; DuckDB reads all (scenario 14)."""
    nothing = kit.release([Page("https://a.example.com/", None, outcome="no-text")])
    assert rk.rows(nothing).schema.equals(release_schema(rk.SIGNALS))
    assert nothing.manifest["rows"] == 0
    pages = [
        Page(f"https://h{i}.example.com/", rk.text(i), extra={"crawl_id": f"2026-{10 + i}", "author": "late" if i else None})
        for i in range(2)
    ]
    some = kit.release(pages)
    read = duckdb.sql(
        f"SELECT crawl_id, author FROM read_parquet('{some.folder}/data/*/*.parquet', hive_partitioning = true) ORDER BY 1"
    ).fetchall()
    assert read == [("2026-10", None), ("2026-11", "late")]


@pytest.mark.parametrize(("keep", "winner"), [("longest", "b"), ("newest", "c"), ("oldest", "a"), ("best", "d")])
def test_the_kept_copy_is_elected_by_the_rule(kit, keep, winner):
    """One member of a cluster is kept, by the rule that the settings name."""
    kit.options = replace(kit.options, keep=keep)
    pages = [
        Page("https://a.example.com/", rk.near(1, 1), day=1),
        Page("https://b.example.com/", rk.near(1, 123456), day=2),
        Page("https://c.example.com/", rk.near(1, 3), day=3),
        Page("https://d.example.com/", rk.near(1, 4), day=2, quality=0.9),
    ]
    assert rk.urls(kit.release(pages)) == [f"https://{winner}.example.com/"]


def test_ties_go_to_the_smallest_url_and_reasons_tell_exact_from_near(kit):
    """Equal lengths: the smallest URL; its exact copies and its near copies are told apart, and both name it."""
    pages = [Page(f"https://{c}.example.com/", rk.near(1, 5 if c == "d" else 4)) for c in "cbad"]
    result = kit.release(pages)
    decided = rk.decisions(result)
    assert rk.urls(result) == ["https://a.example.com/"]
    assert decided["https://c.example.com/"]["reason"] == "exact-duplicate"
    assert decided["https://d.example.com/"]["reason"] == "near-duplicate"
    assert {row["keep_url"] for row in decided.values()} == {"https://a.example.com/"}


def test_a_copy_that_fails_the_policy_is_not_elected(kit):
    """The longest copy is in another language or too poor: the next one is kept, and the rule names what it measured."""
    kit.policy = rk.Policy(least=50)
    kit.options = replace(kit.options, languages=("en",))
    pages = [
        Page("https://a.example.com/", rk.near(1, 123456), extra={"language": "de"}),
        Page("https://b.example.com/", rk.near(1, 5)),
        Page("https://c.example.com/", rk.text(9, 20)),
    ]
    result = kit.release(pages)
    decided = rk.decisions(result)
    assert rk.urls(result) == ["https://b.example.com/"]
    assert (decided["https://a.example.com/"]["stage"], decided["https://a.example.com/"]["reason"]) == ("language", "language")
    short = decided["https://c.example.com/"]
    assert (short["drop_rule"], short["measured"], short["limit"], short["keep"]) == ("min_words", 20.0, 50.0, "words min 50")
    assert result.manifest["rules"] == {"min_words": 1}


def test_the_witness_is_the_first_capture_of_the_latest_version(kit):
    """One version captured twice: one row, with the first capture's date and place."""
    pages = [
        Page("https://www.a.example/", rk.text(1), day=1),
        Page("https://www.a.example/", rk.text(2), day=2, extra={"warc_offset": 22}),
        Page("https://www.a.example/", rk.text(2), day=3, extra={"warc_offset": 33}),
    ]
    result = kit.release(pages)
    [row] = rk.rows(result).to_pylist()
    assert (row["text"], row["warc_offset"], row["fetched_at"]) == (pages[1].text, 22, _day(3))
    assert result.manifest["older_versions"] == 2
    assert pq.read_table(result.decisions.path).num_rows == 3


def test_spans_of_the_policys_kinds_are_cut_before_tokens_are_counted(kit):
    """Only listed kinds are cut; the token count is that of the text as released."""
    text = "write to someone@site.example " + rk.text(1)
    kit.policy, kit.tokens = rk.Policy(cut=("email",)), rk.Lengths()
    [row] = rk.rows(kit.release([Page("https://www.a.example/", text, spans=(("email", 9, 29), ("phone", 0, 5)))])).to_pylist()
    assert row["text"] == text[:9] + text[29:]
    assert row["token_count"] == 122


def test_a_release_of_this_name_is_found_again_or_refused(kit):
    """Same inputs: the release is there already. Other inputs: a clear error that says what to do."""
    inputs = kit.snapshot([Page("https://www.a.example/", rk.text(1))])
    parts = build.Parts(kit.judge, kit.policy, rk.SIGNALS, None)

    def run(options):
        (kit.folder / "scratch").mkdir(exist_ok=True)
        return build.build_release(
            inputs,
            parts,
            options,
            kit.folder / "releases",
            decisions_path=kit.folder / "d.parquet",
            scratch=kit.folder / "scratch",
        )

    first = run(kit.options)
    again = run(kit.options)
    assert (first.built, again.built) == (True, False)
    assert again.manifest == first.manifest
    with pytest.raises(StoreError, match=r"choose another export\.name"):
        run(replace(kit.options, gone="keep"))
    shard = first.folder / first.manifest["shards"][0]["path"]
    shard.write_bytes(shard.read_bytes()[:-1])
    with pytest.raises(StoreError, match="another size"):
        run(kit.options)
    (first.folder / "manifest.json").write_text("{")
    with pytest.raises(StoreError, match="cannot be read"):
        run(kit.options)


def test_an_interrupted_build_leaves_no_release_and_does_not_hinder_the_next(kit, monkeypatch):
    """Killed before the last rename: no folder of that name; the next build cleans up and succeeds."""
    inputs = kit.snapshot([Page("https://www.a.example/", rk.text(1))])
    parts = build.Parts(kit.judge, kit.policy, rk.SIGNALS, None)
    (kit.folder / "scratch").mkdir()
    where = {"decisions_path": kit.folder / "d.parquet", "scratch": kit.folder / "scratch"}
    with monkeypatch.context() as broken:
        broken.setattr(build, "publish", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            build.build_release(inputs, parts, kit.options, kit.folder / "releases", **where)
    assert not (kit.folder / "releases" / "v1").exists()
    assert build.build_release(inputs, parts, kit.options, kit.folder / "releases", **where).built
    assert [path.name for path in (kit.folder / "releases").iterdir()] == ["v1"]


def test_a_card_that_disagrees_with_the_shards_is_refused(kit, monkeypatch):
    """Counts are read back from the shards: one row less, and nothing is published."""
    original = build.write_shards

    def lossy(plan, store, schema, folder, seen):
        for written in original(plan, store, schema, folder, seen):
            table = pq.ParquetFile(folder / written.path).read()
            pq.write_table(table.slice(1), folder / written.path)
            yield written

    monkeypatch.setattr(build, "write_shards", lossy)
    with pytest.raises(CorpusError, match="the card says"):
        kit.release([Page(f"https://www.s{i}.example/", rk.text(i)) for i in range(3)])


def test_clusters_of_another_snapshot_are_refused(kit):
    """Clusters that miss a document, or name one that is not there, stop the release and name the command."""
    one = kit.snapshot([Page("https://www.a.example/", rk.text(1))])
    two = kit.snapshot([Page("https://www.a.example/", rk.text(1)), Page("https://www.b.example/", rk.text(2))])
    for inputs, clusters in ((one, two), (two, one)):
        with pytest.raises(StoreError, match="corpus dedup"):
            kit.build(replace(inputs, clusters=clusters.clusters))


def test_a_policy_that_names_a_signal_nobody_measured_stops(kit):
    """The error names signal, segment and command; no rows are silently dropped or kept."""
    kit.policy = rk.Policy(signals=("words", "perplexity"))
    with pytest.raises(StoreError, match=r"(?s)perplexity.*corpus process"):
        kit.release([Page("https://www.a.example/", rk.text(1))])


def test_languages_can_have_folders_of_their_own(kit):
    """With by_language each language has its shards and a configuration in the card."""
    kit.options = replace(kit.options, by_language=True)
    result = kit.release(
        [Page(f"https://www.{c}.example/", rk.text(n), extra={"language": c}) for n, c in enumerate(["de", "en"])]
    )
    assert [shard["path"].split("/")[2] for shard in result.manifest["shards"]] == ["lang=de", "lang=en"]
    assert '- config_name: "lang-de"' in (result.folder / "README.md").read_text()


def test_hostile_pages_do_no_harm_in_the_side_files(kit):
    """A domain, a title and a text that would be markup, a formula or a key stay text."""
    evil = "=x|<b>[y](javascript:z).example"
    page = Page("https://www.a.example/", rk.text(1) + " \u202e<script>", extra={"domain": evil, "title": "---\nlicense: mit"})
    result = kit.release([page])
    card = (result.folder / "README.md").read_text()
    front, body = card.split("---\n")[1], card.split("---\n", 2)[2]
    assert "mit" not in front
    assert evil not in body
    assert "<b>" not in body
    assert "<script>" not in card
    [_, row] = csv.reader((result.folder / "domains.csv").open())
    assert row[0] == f"'{evil}"
    assert json.loads((result.folder / "croissant.json").read_text())["@type"] == "sc:Dataset"


def test_the_card_tells_numbers_that_the_manifest_tells(kit):
    """Rows, funnel, consent counts and filters in the card are the manifest's; human parts are marked."""
    kit.policy = rk.Policy(least=50)
    kit.judge = rk.Judge({"www.b.example": "tdmrep"})
    kit.options = replace(kit.options, previous=json.dumps({"name": "v0", "rows": 7, "identity": {}, "shards": []}))
    result = kit.release(
        [
            Page("https://www.a.example/", rk.text(1)),
            Page("https://www.b.example/", rk.text(2)),
            Page("https://www.c.example/", rk.text(3, 9)),
        ]
    )
    card = (result.folder / "README.md").read_text()
    for line in (
        "1 pages of 1 registered domains", "| quality | 3 | 2 |", "`quality`: a quality rule dropped it | 1 |", "| min\\_words | 1 |", "| unknown | 1 |",
        "Compared with `v0`: 7 rows then, 1 now.", "✍ TO BE PROVIDED BY PROVIDER",
    ):  # fmt: skip
        assert line in card

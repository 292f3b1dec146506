"""Takedowns from order to proof on real folders: nothing of a page is left, everything else is as it was."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

from corpus.app.map_task import STAGE as MAP
from corpus.store.warc_members import Member, read_members
from tests.byte_scan import found_in, held
from tests.contract import test_push_hub
from tests.contract.test_push_hub import CARD, REPO
from tests.demo_corpus import DemoCorpus, corpus_cli, project_of
from tests.hub_standin import HubStandIn
from tests.takedown_kit import Prey, apply, manifest, prey, run, verified

hub = test_push_hub.hub
"""The fixture."""

PUSH = (f"publish.repo={REPO}", "publish.card=card.toml")


@pytest.fixture(scope="module")
def wanted(demo_corpus: DemoCorpus) -> Prey:
    return prey(demo_corpus)


@pytest.fixture(scope="module")
def taken(demo_corpus: DemoCorpus, wanted: Prey, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, object]]:
    """A corpus after the takedown of a domain, a URL and an id, and what `apply` told. To be looked at only."""
    folder = demo_corpus.copy(tmp_path_factory.mktemp("taken") / "corpus")
    wanted.order(folder)
    return folder, apply(folder)


def test_no_byte_of_a_text_is_left_here_or_on_the_hub(
    demo_corpus: DemoCorpus, wanted: Prey, hub: HubStandIn, tmp_path: Path
) -> None:
    """Crawl, release, push, takedown of a domain, a URL and an id, apply, push: no file of the folder and nothing the hub can
    still give out holds a line of them, packed or not; a later export and push neither."""
    folder = demo_corpus.copy(tmp_path / "corpus")
    (folder / "card.toml").write_text(CARD, "utf-8")
    assert run(folder, "export", "--name", "v2", settings=PUSH).code == 0
    assert run(folder, "push", settings=PUSH).code == 0
    needles = list(wanted.needles)
    assert {needle for _, needle in found_in([folder], needles)} == set(needles), "the test must know what it looks for"
    assert any(held(data, needles) for data in hub.sent.values())
    wanted.order(folder)
    blocked = run(folder, "push", "--json", settings=PUSH)
    assert blocked.code == 1
    assert "takedown" in str(blocked.json["blocked"])
    assert apply(folder)["superseded"] == {"v1": "v1.1", "v2": "v2.1"}
    pushed = run(folder, "push", "--purge-history", "--json", settings=PUSH)
    assert pushed.code == 0, pushed.err
    assert pushed.json["release"] == "v2.1"
    assert run(folder, "export", "--name", "v3", settings=PUSH).code == 0
    assert run(folder, "push", "--purge-history", settings=PUSH).code == 0
    assert found_in([folder], needles) == []
    repo = hub.repos[REPO]
    assert not [oid for oid in repo.objects if held(hub.sent.get(oid, b""), needles)]
    served = [repo.trees[revision] for ref in repo.refs for revision in repo.history(ref)]
    assert not [path for tree in served for path, stored in tree.items() if held(stored.data, needles)]
    assert verified(folder) == []


def test_the_proof_says_what_was_there_and_that_nothing_remains(taken: tuple[Path, dict[str, object]], wanted: Prey) -> None:
    """CONTRACT's document, and a create-only proof with before, after, remaining 0 and the digest of every rewritten file."""
    folder, told = taken
    assert {"rows_before", "rows_after", "remaining", "shards_rewritten", "proof"} <= told.keys()
    assert told["remaining"] == 0
    assert told["rows_after"] == told["rows_before"] - len(wanted.urls)  # type: ignore[operator]
    proof = json.loads((folder / str(told["proof"])).read_text())
    assert proof["before"]["documents"] == len(wanted.urls)
    assert proof["before"]["warc_records"] >= 3 * len(wanted.urls)
    assert not any(proof["after"].values())
    assert [entry["kind"] for entry in proof["orders"]] == ["domain", "url", "id"]
    from corpus.store.commits import file_sha256

    for item in proof["rewritten"]:
        assert item["before"] != item["after"]
        assert file_sha256(folder / item["file"]) == item["after"], item
    assert all(not (folder / name).exists() for name in proof["removed"])
    assert verified(folder) == []
    again = apply(folder)
    assert (again["orders"], again["proof"], again["remaining"]) == (0, told["proof"], 0)


def test_every_offset_stays_and_other_records_do_not_change(
    demo_corpus: DemoCorpus, taken: tuple[Path, dict[str, object]], wanted: Prey
) -> None:
    """The rewritten archive has the length it had; every record of another page is byte for byte where it was; other people's
    readers step over the tombstones without complaint."""
    import fastwarc.warc
    import warcio.archiveiterator

    folder, _ = taken
    for old in sorted(demo_corpus.folder.glob("warc/**/*.warc.gz")):
        new = folder / old.relative_to(demo_corpus.folder)
        before, after = old.read_bytes(), new.read_bytes()
        assert len(before) == len(after)
        gone = 0
        for a, b in zip(read_members(old), read_members(new), strict=True):
            assert isinstance(a, Member)
            assert isinstance(b, Member)
            assert (a.offset, a.length, a.record_id) == (b.offset, b.length, b.record_id)
            if b.removed:
                gone += 1
            else:
                assert before[a.offset : a.offset + a.length] == after[b.offset : b.offset + b.length]
                assert a.target not in wanted.urls
        assert gone or "policy" in str(old)
        with new.open("rb") as stream:
            read = [
                (r.rec_type, r.content_stream().read())
                for r in warcio.archiveiterator.ArchiveIterator(stream, check_digests="raise")
            ]
        with new.open("rb") as stream:
            quick = list(fastwarc.warc.ArchiveIterator(stream, parse_http=False))
        assert len(read) == len(quick) == sum(1 for _ in read_members(new))
        assert sum(body.startswith(b"corpus-taken-down:") for _, body in read) == gone


def test_statement_files_are_kept_as_evidence(taken: tuple[Path, dict[str, object]], wanted: Prey) -> None:
    """Of a domain that is taken down the robots.txt stays, in the ledger and in the archive; its pages and their index lines go."""
    folder, _ = taken
    kept = [
        member.target
        for path in folder.glob("warc/**/*.warc.gz")
        for member in read_members(path)
        if isinstance(member, Member) and f"//{wanted.domain}:" in member.target
    ]
    assert kept
    assert all(target.endswith(("/robots.txt", "/tdmrep.json", "/ai.txt")) for target in kept)
    lines = [line for path in folder.glob("cdxj/**/*.cdxj") for line in path.read_text().splitlines()]
    assert not [line for line in lines if f"//{wanted.domain}:" in line and "robots.txt" not in line]


def test_measuring_again_gives_the_same_bytes(taken: tuple[Path, dict[str, object]], tmp_path: Path) -> None:
    """A family file without the rows is what the map stage makes of the archive without the records."""
    folder = Path(shutil.copytree(taken[0], tmp_path / "corpus"))
    project = project_of(folder)
    before = {record.key: dict(record.outputs) for record in project.commits.list(MAP)}
    rows = {record.key: dict(record.rows) for record in project.commits.list(MAP)}
    for key in before:
        project.commits.drop(MAP, key)
    assert corpus_cli("process", "-c", folder / "corpus.toml").code == 0
    assert {record.key: dict(record.outputs) for record in project.commits.list(MAP)} == before
    assert {record.key: dict(record.rows) for record in project.commits.list(MAP)} == rows


def test_the_superseding_release_is_whole(taken: tuple[Path, dict[str, object]], demo_corpus: DemoCorpus, wanted: Prey) -> None:
    """v1.1 holds v1's other rows unchanged; card, Croissant file, domains and manifest speak of it; v1 is withdrawn and empty."""
    folder, _ = taken
    files = {
        name: [str(p) for p in (root / "releases" / name).glob("data/*/*.parquet")]
        for name, root in (("v1", demo_corpus.folder), ("v1.1", folder))
    }
    old, new = (
        duckdb.execute("SELECT * FROM read_parquet($f, hive_partitioning = false) ORDER BY url", {"f": f}).fetchall()
        for f in files.values()
    )
    url_at = pq.ParquetFile(files["v1"][0]).schema_arrow.names.index("url")
    assert new == [row for row in old if row[url_at] not in wanted.urls]
    told, before = manifest(folder, "v1.1"), manifest(folder, "v1")
    assert (before["withdrawn"], before["superseded_by"], before["shards"]) == (True, "v1.1", [])
    assert not list((folder / "releases" / "v1").rglob("*.parquet"))[1:]  # the list of tombstones
    assert told["rows"] == len(new) == told["funnel"][-1]["out"]
    assert sum(told["languages"].values()) == len(new) == sum(told["consent"].values())
    assert all(step["in"] == step["out"] + sum(step["dropped"].values()) for step in told["funnel"])
    domains = (folder / "releases/v1.1/domains.csv").read_text()
    assert wanted.domain not in domains
    text_at = pq.ParquetFile(files["v1"][0]).schema_arrow.names.index("text")
    assert sum(int(line.split(",")[2]) for line in domains.splitlines()[1:]) == sum(len(row[text_at].encode()) for row in new)
    card = (folder / "releases/v1.1/README.md").read_text()
    assert "Takes the place of `v1`" in card
    assert f"{len(new)} pages of" in card
    shard = told["shards"][0]
    assert json.loads((folder / "releases/v1.1/croissant.json").read_text())["distribution"][1]["sha256"] == shard["sha256"]
    down = pq.read_table(folder / "releases/v1.1/TOMBSTONES.parquet").to_pylist()
    assert {(row["kind"], row["value"]) for row in down} >= {("domain", wanted.domain), ("id", wanted.id)}
    assert sum(row["kind"] == "url_id" for row in down) >= 2
    said = run(folder, "replay", "v1")
    assert said.code == 1
    assert "withdrawn" in said.err
    assert run(folder, "replay", "v1.1").code == 1
    compared = run(folder, "diff", "v1", "v1.1")
    assert compared.code == 2
    assert "compare v1.1, which stands in its place" in compared.err
    assert run(folder, "sql", "select count(*) from records", "--json").json["rows"] == [[len(new)]]


def test_shards_that_are_not_touched_are_shared(demo_corpus: DemoCorpus, wanted: Prey, tmp_path: Path) -> None:
    """Of a release of many shards only those that hold the pages are written anew; the others are the same files."""
    folder = demo_corpus.copy(tmp_path / "corpus")
    assert run(folder, "export", "--name", "v2", settings=("export.shard_bytes=4kB",)).code == 0
    shards = {shard["path"]: shard["sha256"] for shard in manifest(folder, "v2")["shards"]}
    inodes = {path: (folder / "releases/v2" / path).stat().st_ino for path in shards}
    assert len(shards) > 8
    assert run(folder, "takedown", "add", wanted.url, "--reason", "r").code == 0
    assert apply(folder)["superseded"] == {"v1": "v1.1", "v2": "v2.1"}
    new = {shard["path"]: shard["sha256"] for shard in manifest(folder, "v2.1")["shards"]}
    assert [path for path in new if new[path] != shards[path]] == [
        item["path"] for item in manifest(folder, "v2")["withdrawn_shards"]
    ]
    assert sum(new[path] != shards[path] for path in new) == 1
    shared = [path for path in new if new[path] == shards[path]]
    assert all((folder / "releases/v2.1" / path).stat().st_ino == inodes[path] for path in shared)
    assert run(folder, "takedown", "add", wanted.domain, "--reason", "r").code == 0
    assert apply(folder)["superseded"] == {"v1.1": "v1.2", "v2.1": "v2.2"}
    assert found_in([folder / "releases"], list(prey_lines(demo_corpus, wanted))) == []
    assert verified(folder) == []


def prey_lines(demo: DemoCorpus, wanted: Prey) -> list[bytes]:
    """Lines of the domain and the URL alone."""
    rows = duckdb.execute(
        "SELECT text FROM read_parquet($f, hive_partitioning = false) WHERE list_contains($u, url) AND id <> $id",
        {"f": [str(p) for p in demo.folder.glob("documents/*/*.parquet")], "u": list(wanted.urls), "id": wanted.id},
    ).fetchall()
    text = "\n".join(row[0] for row in rows).encode()
    return [needle for needle in wanted.needles if needle in text]


def _flipped(data: bytes, at: int) -> bytes:
    """The same with one byte another."""
    return data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :]


def test_a_damaged_archive_loses_what_can_be_read_and_blocks_nothing(
    demo_corpus: DemoCorpus, wanted: Prey, tmp_path: Path
) -> None:
    """One byte of another domain's page is flipped: the order's text goes, the file is named, no proof is given, other stages
    go on, the same is said again; with the whole file back the rest goes, the proof is there, and all is as without damage."""
    folder = demo_corpus.copy(tmp_path / "corpus")
    path, hit = next(
        (path, m)
        for path in sorted(folder.glob("warc/crawl_id=*/*.warc.gz"))
        for m in read_members(path)
        if isinstance(m, Member) and m.kind == "response" and m.target.startswith(f"{demo_corpus.origins['bakery']}/")
    )
    whole = path.read_bytes()
    path.chmod(0o644)
    path.write_bytes(_flipped(whole, hit.offset + hit.length // 2))
    damaged = path.read_bytes()
    assert run(folder, "takedown", "add", wanted.domain, "--reason", "r").code == 0
    needles = prey_lines(demo_corpus, Prey(wanted.domain, "", "-", _of_domain(wanted), wanted.needles))
    assert needles
    for _ in range(2):
        said = run(folder, "takedown", "apply")
        assert said.code == 1, said.err
        assert path.name in said.err
        assert "no proof" in said.err
        assert found_in([folder], needles) == []
    assert not list(folder.glob("proofs/*"))
    left = [m for m in read_members(path) if isinstance(m, Member) and not m.removed]
    now = path.read_bytes()
    assert all(now[m.offset : m.offset + m.length] == damaged[m.offset : m.offset + m.length] for m in left)
    assert any("bytes are not those" in fault and path.name in fault for fault in verified(folder))
    project = project_of(folder)
    before = {record.key: (dict(record.outputs), dict(record.rows)) for record in project.commits.list(MAP)}
    assert corpus_cli("process", "-c", folder / "corpus.toml").code == 0
    assert {record.key: (dict(record.outputs), dict(record.rows)) for record in project.commits.list(MAP)} == before
    assert run(folder, "export", "--name", "v2").code == 0
    path.chmod(0o644)
    path.write_bytes(whole)
    told = apply(folder)
    assert told["remaining"] == 0
    assert (folder / str(told["proof"])).is_file()
    assert found_in([folder], needles) == []
    assert verified(folder) == []
    before = {record.key: (dict(record.outputs), dict(record.rows)) for record in project.commits.list(MAP)}
    for key in before:
        project.commits.drop(MAP, key)
    assert corpus_cli("process", "-c", folder / "corpus.toml").code == 0
    assert {record.key: (dict(record.outputs), dict(record.rows)) for record in project.commits.list(MAP)} == before


def _of_domain(wanted: Prey) -> tuple[str, ...]:
    return tuple(url for url in wanted.urls if f"//{wanted.domain}:" in url)


def test_a_damaged_list_of_domains_is_made_again(
    demo_corpus: DemoCorpus, taken: tuple[Path, dict[str, object]], wanted: Prey, tmp_path: Path
) -> None:
    """A row that does not belong into domains.csv: the successor's is counted from its own shards, as it would have been."""
    folder = demo_corpus.copy(tmp_path / "corpus")
    side = folder / "releases/v1/domains.csv"
    side.chmod(0o644)
    with side.open("a") as file:
        file.write("x,1\n")
    wanted.order(folder)
    assert apply(folder)["superseded"] == {"v1": "v1.1"}
    assert (folder / "releases/v1.1/domains.csv").read_bytes() == (taken[0] / "releases/v1.1/domains.csv").read_bytes()
    assert not list((folder / "releases").glob(".*"))


def test_a_damaged_family_file_is_named_and_made_again(demo_corpus: DemoCorpus, wanted: Prey, tmp_path: Path) -> None:
    """A cut signals file: an error with its name and what helps; that does help."""
    folder = demo_corpus.copy(tmp_path / "corpus")
    cut = sorted(folder.glob("signals/*/*.parquet"))
    for path in cut:
        path.chmod(0o644)
        path.write_bytes(path.read_bytes()[:1000])
    assert run(folder, "takedown", "add", wanted.domain, "--reason", "r").code == 0
    said = run(folder, "takedown", "apply")
    assert said.code == 1, said.err
    assert any(path.name in said.err for path in cut)
    assert "verify --repair" in said.err
    assert "Traceback" not in said.err
    run(folder, "verify", "--repair")
    assert apply(folder)["remaining"] == 0
    assert verified(folder) == []

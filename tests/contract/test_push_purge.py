"""`push --purge-history` with the real client: a hub with a past forgets it, proves it, and is caught when it does not."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from corpus.cli.push import _purged
from tests.contract.test_push_hub import CARD, REPO, TOKEN, _run, hub  # noqa: F401  (the fixture)
from tests.demo_corpus import DemoCorpus, Said, project_of
from tests.hub_repo import MAIN, Repo, Stored
from tests.hub_standin import Fault, HubStandIn

API = f"/api/datasets/{REPO}"


@pytest.fixture(scope="module")
def two(demo_corpus: DemoCorpus, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A corpus with v2, and v3 after a domain was taken down; the domain."""
    folder = demo_corpus.copy(tmp_path_factory.mktemp("purge") / "corpus")
    (folder / "card.toml").write_text(CARD, "utf-8")
    assert _run(folder, "export", "--name", "v2").code == 0
    rows = _run(folder, "sql", "--json", "SELECT domain FROM records GROUP BY 1 ORDER BY count(*), 1 LIMIT 1").json["rows"]
    project_of(folder).control.append("takedown", at=1.0, kind="domain", value=rows[0][0], reason="asked")
    assert _run(folder, "export", "--name", "v3").code == 0
    return folder, rows[0][0]


@pytest.fixture
def after(two: tuple[Path, str], hub: HubStandIn, tmp_path: Path) -> Path:  # noqa: F811  (the fixture above)
    """v2 is on the hub, with a tag, a branch, a conversion and a pull request on it; the folder has v3."""
    release = two[0] / "releases" / "v2"
    files = {
        path.relative_to(release).as_posix(): Stored(path.read_bytes(), path.suffix == ".parquet")
        for path in release.rglob("*")
        if path.is_file()
    }
    hub.sent |= {stored.oid: stored.data for stored in files.values() if stored.large}
    repo = hub.repos[REPO] = Repo(private=True)
    head = repo.commit(files)
    repo.refs |= {"refs/tags/v2": head, "refs/heads/old": head, "refs/convert/parquet": head}
    repo.commit(files | {"note.txt": files["domains.csv"]}, "refs/pr/1", parent=head)
    return Path(shutil.copytree(two[0], tmp_path / "corpus"))


def _purge(folder: Path, *arguments: str) -> Said:
    return _run(folder, "push", "--purge-history", "--json", *arguments)


def _proofs(folder: Path) -> list[dict[str, Any]]:
    return [
        json.loads(path.read_text()) for path in sorted((folder / "proofs").glob("purge-*.json")) if ".plan." not in path.name
    ]


def _texts(folder: Path, domain: str, name: str = "v2") -> list[bytes]:
    """Texts of a domain, as a release held them."""
    import duckdb

    files = [str(path) for path in (folder / "releases" / name).glob("data/*/*.parquet")]
    found = duckdb.execute(
        "SELECT id FROM read_parquet($f, hive_partitioning = false) WHERE domain = $d", {"f": files, "d": domain}
    ).fetchall()
    return [row[0].encode() for row in found]


def _left(hub: HubStandIn, repo: Repo) -> bytes:  # noqa: F811  (the fixture above)
    """Every byte the hub could still give out."""
    reached = {revision for ref in repo.refs for revision in repo.history(ref)}
    return b"".join(stored.data for revision in reached for stored in repo.trees[revision].values()) + b"".join(
        hub.sent[oid] for oid in repo.objects if oid in hub.sent
    )


def test_a_past_is_gone_and_the_proof_says_so(after: Path, two: tuple[Path, str], hub: HubStandIn) -> None:  # noqa: F811
    """One revision, one ref, no large file but the release's; every old revision and file was asked for and answered 404."""
    repo = hub.repos[REPO]
    old = set(repo.history("refs/pr/1")) | set(repo.commits)
    shards = {stored.oid for stored in repo.files.values() if stored.large}
    told = _purge(after)
    assert told.code == 0, told
    assert list(repo.refs) == [MAIN]
    assert len(repo.commits) == 1
    assert set(repo.objects) == {stored.oid for stored in repo.files.values() if stored.large}
    (proof,) = _proofs(after)
    assert old < set(proof["revisions"])
    assert {a["status"] for facts in proof["revisions"].values() for a in facts["asked"]} == {404}
    assert sum(len(facts["asked"]) for facts in proof["revisions"].values()) > len(proof["revisions"])
    assert proof["commit"] == repo.commits[-1] == told.json["commit"]
    assert set(proof["large"]) & shards
    assert sorted(proof["refs"]) == ["refs/convert/parquet", "refs/heads/old", "refs/pr/1", "refs/tags/v2"]
    assert proof["files_read_back"] == len(repo.files)
    assert told.json["purge"]["proof"] == "proofs/purge-00000002.json"
    gone = _texts(after, two[1])
    assert gone
    assert not any(mark in _left(hub, repo) for mark in gone)
    assert TOKEN not in json.dumps(_proofs(after)) + told.out + told.err


def test_a_second_purge_only_asks_again(after: Path, hub: HubStandIn) -> None:  # noqa: F811
    """Nothing is squashed or deleted twice, and what an earlier purge removed is asked for once more."""
    assert _purge(after).code == 0
    head = hub.repos[REPO].commits[-1]
    hub.log.clear()
    assert _purge(after).code == 0
    assert hub.repos[REPO].commits == [head]
    assert not [line for line in hub.log if line.startswith(("DELETE", "POST")) and "paths-info" not in line]
    first, second = _proofs(after)
    assert second["revisions"] == first["revisions"]
    assert first["now"]["revisions"] == len(first["revisions"])
    assert set(second["now"].values()) == {0}
    assert _purged({**first, "proof": "p"}, dry_run=False).startswith(f"purged {len(first['revisions'])} earlier revisions")
    assert _purged({**second, "proof": "p"}, dry_run=False).startswith("purged nothing new; of all purges")


def test_a_dry_run_says_what_would_be_forgotten(after: Path, hub: HubStandIn) -> None:  # noqa: F811
    """Revisions, refs and large files by name; nothing is changed here or there."""
    before = dict(hub.repos[REPO].refs)
    told = _purge(after, "--dry-run")
    assert told.code == 0
    assert set(told.json["purge"]["revisions"]) == set(hub.repos[REPO].history("refs/pr/1"))
    assert len(told.json["purge"]["refs"]) == 4
    assert hub.repos[REPO].refs == before
    assert not (after / "proofs").exists() or not list((after / "proofs").glob("purge-*"))


def test_a_hub_that_only_claims_to_forget_is_caught(after: Path, hub: HubStandIn) -> None:  # noqa: F811
    """It says yes to everything and serves the old revisions all the same: exit 1, named, and no proof; when it means it, a proof."""
    repo = hub.repos[REPO]
    repo.hoards = True
    told = _purge(after)
    assert told.code == 1
    assert "still serves" in told.err
    assert repo.history("refs/pr/1")[0][:12] in told.err if "refs/pr/1" in repo.refs else "old revisions" in told.err
    assert _proofs(after) == []
    repo.hoards = False
    repo.delete_objects(set(repo.objects) - {s.oid for s in repo.files.values() if s.large}, rewrite=True)
    assert _purge(after).code == 0
    (proof,) = _proofs(after)
    assert {a["status"] for facts in proof["revisions"].values() for a in facts["asked"]} == {404}


def test_a_pull_request_that_keeps_the_past_is_named(after: Path, hub: HubStandIn) -> None:  # noqa: F811
    """Its ref cannot be deleted through the API: large files are gone from it, small ones are not, so the purge is not done."""
    hub.pull_requests_go = False
    old = hub.repos[REPO].refs["refs/pr/1"]
    told = _purge(after)
    assert told.code == 1
    assert "refs/pr/1" in told.err
    assert "close a pull request first" in told.err
    assert _proofs(after) == []
    assert not any(
        s.large and s.oid not in hub.repos[REPO].objects
        for s in hub.repos[REPO].trees[hub.repos[REPO].refs["refs/pr/1"]].values()
    )
    del hub.repos[REPO].refs["refs/pr/1"]
    assert _purge(after).code == 0
    assert old in _proofs(after)[0]["revisions"]


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (f"POST {API}/super-squash/", 412),
        (f"POST {API}/lfs-files/batch", 500),
        ("HEAD /datasets/", 403),
        *(
            pytest.param(request, status, marks=pytest.mark.slow)
            for request, status in [
                (f"GET {API}/refs", 500),
                (f"GET {API}/commits/", 429),
                (f"GET {API}/lfs-files", 503),
                (f"DELETE {API}/tag/", 409),
                (f"DELETE {API}/branch/", 0),
                (f"POST {API}/super-squash/", 0),
                (f"POST {API}/lfs-files/batch", 403),
                (f"GET {API}/revision/", 502),
                ("HEAD /datasets/", 500),
            ]
        ),
    ],
)
def test_a_purge_that_broke_goes_on(after: Path, hub: HubStandIn, request_: str, status: int) -> None:  # noqa: F811
    """Whatever step fails: exit 1, a plain sentence, no proof, the folder as it was but for the plan; the next purge finishes it."""
    old = set(hub.repos[REPO].commits)
    before = {path: path.read_bytes() for path in (after / "releases").rglob("*") if path.is_file()}
    leak = f"bad {TOKEN} at https://example.org/?sig=1"
    hub.faults.append(Fault(request_, status, 100, after=request_.startswith("HEAD"), message=leak, headers={"Retry-After": "1"}))
    told = _purge(after)
    assert told.code == 1, told
    assert "Traceback" not in told.err
    assert TOKEN not in told.err + told.out
    assert "sig=" not in told.err
    assert "--purge-history again" in told.err
    assert _proofs(after) == []
    assert before == {path: path.read_bytes() for path in (after / "releases").rglob("*") if path.is_file()}
    hub.faults.clear()
    assert _purge(after).code == 0
    assert list(hub.repos[REPO].refs) == [MAIN]
    assert old <= set(_proofs(after)[0]["revisions"])


def test_a_squash_whose_answer_is_lost(after: Path, hub: HubStandIn) -> None:  # noqa: F811
    """The hub did it and the answer broke: the old revisions are known from the plan, asked for, and proven gone."""
    old = set(hub.repos[REPO].commits)
    hub.faults.append(Fault(f"POST {API}/super-squash/", status=502, times=100, done=True))
    assert _purge(after).code == 1
    hub.faults.clear()
    assert len(hub.repos[REPO].commits) == 1
    assert _purge(after).code == 0
    assert old <= set(_proofs(after)[0]["revisions"])


def test_a_blocked_push_purges_nothing(two: tuple[Path, str], after: Path, hub: HubStandIn) -> None:  # noqa: F811
    """While a takedown is newer than the release, the past stays as it is: better late than half."""
    project_of(after).control.append("takedown", at=2.0, kind="domain", value="other.example", reason="asked")
    before = dict(hub.repos[REPO].refs)
    assert _purge(after).code == 1
    assert hub.repos[REPO].refs == before
    assert not list((after / "proofs").glob("purge-*"))

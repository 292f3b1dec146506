"""Publishing with the hub's real client against a hub on this machine: faults, takedowns, blocks, and what arrives."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from corpus.app.push import newest_release
from corpus.export.card import TO_DO
from tests.demo_corpus import DemoCorpus, Said, corpus_cli, project_of
from tests.hub_standin import Fault, HubStandIn

TOKEN = "hf_" + "s" * 34
REPO = "tester/demo"
CARD = "\n".join(
    f'{part} = "words of a person"' for part in ("about", "risks", "takedown", "made_by", "not_for", "maintained_by", "cite")
)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[HubStandIn]:
    """A hub, and the real client told to use it, without waits between its tries."""
    constants = pytest.importorskip(
        "huggingface_hub.constants", reason="needs the hub's client: pip install 'huggingface-hub>=1.20,<3'"
    )
    with HubStandIn().serving() as standin:
        monkeypatch.setattr(constants, "ENDPOINT", standin.endpoint)
        monkeypatch.setattr(
            constants, "HUGGINGFACE_CO_URL_TEMPLATE", standin.endpoint + "/{repo_id}/resolve/{revision}/{filename}"
        )
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        monkeypatch.setattr("huggingface_hub.utils._http.time.sleep", lambda _: None)
        monkeypatch.setenv("HF_ENDPOINT", standin.endpoint)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        yield standin


@pytest.fixture
def folder(demo_corpus: DemoCorpus, tmp_path: Path) -> Path:
    """A demo corpus with its first release, and words for the card of the next."""
    copy = demo_corpus.copy(tmp_path / "corpus")
    (copy / "card.toml").write_text(CARD, "utf-8")
    return copy


def _run(folder: Path, verb: str, *arguments: str) -> Said:
    settings = (f"publish.repo={REPO}", "publish.card=card.toml", "optout.recheck_after=3000d")
    sets = [part for setting in settings for part in ("--set", setting)]
    return corpus_cli(*verb.split(), "-c", folder / "corpus.toml", *sets, *arguments)


@pytest.fixture(scope="module")
def exported(demo_corpus: DemoCorpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A demo corpus whose newest release has a complete card."""
    copy = demo_corpus.copy(tmp_path_factory.mktemp("exported") / "corpus")
    (copy / "card.toml").write_text(CARD, "utf-8")
    assert _run(copy, "export", "--name", "v2").code == 0
    return copy


@pytest.fixture
def ready(exported: Path, tmp_path: Path) -> Path:
    """A copy of it to push from and to damage."""
    return Path(shutil.copytree(exported, tmp_path / "corpus"))


def _same(folder: Path, hub: HubStandIn, name: str) -> bool:
    release = folder / "releases" / name
    local = {path.relative_to(release).as_posix(): path.read_bytes() for path in release.rglob("*") if path.is_file()}
    return {path: stored.data for path, stored in hub.repos[REPO].files.items()} == local


def test_a_push_sends_everything_once_and_reads_it_back(ready: Path, hub: HubStandIn) -> None:
    """One commit, every byte the same, private at first; the second push sends nothing and makes no commit."""
    told = _run(ready, "push", "--json")
    assert told.code == 0, told
    assert _same(ready, hub, "v2")
    assert told.json["verified"] == len(hub.repos[REPO].files) == 6
    assert hub.repos[REPO].private
    assert hub.commits() == 1
    again = _run(ready, "push", "--json")
    assert (again.code, again.json["upload"], again.json["unchanged"], hub.commits()) == (0, [], 6, 1)


def test_a_dry_run_lists_files_and_bytes_and_changes_nothing(ready: Path, hub: HubStandIn) -> None:
    """Files with their sizes, as the release has them; the hub sees no write."""
    told = _run(ready, "push", "--dry-run", "--json")
    release = ready / "releases" / "v2"
    assert told.code == 0
    assert {item["path"]: item["bytes"] for item in told.json["upload"]} == {
        path.relative_to(release).as_posix(): path.stat().st_size for path in release.rglob("*") if path.is_file()
    }
    assert told.json["bytes"] == sum(item["bytes"] for item in told.json["upload"])
    assert not hub.repos
    assert all(line.startswith("GET ") for line in hub.log)


def test_a_broken_connection_loses_nothing(ready: Path, hub: HubStandIn) -> None:
    """One large file arrives, then the line breaks for good; the next push sends only the rest."""
    hub.faults.append(Fault("PUT /_lfs/", after=1, times=100))
    broken = _run(ready, "push")
    assert broken.code == 1
    assert "connection" in broken.err
    assert "run corpus push again" in broken.err
    assert not hub.repos[REPO].files
    arrived = set(hub.sent)
    assert len(arrived) == 1
    hub.faults.clear()
    hub.log.clear()
    assert _run(ready, "push").code == 0
    assert _same(ready, hub, "v2")
    assert arrived.isdisjoint(hub.uploads())


def test_a_lost_answer_to_the_commit_is_found_out(ready: Path, hub: HubStandIn) -> None:
    """The commit arrives and its answer does not: the next push sees that everything is there."""
    hub.faults.append(Fault(f"POST /api/datasets/{REPO}/commit/", status=502, done=True))
    assert _run(ready, "push").code == 1
    again = _run(ready, "push", "--json")
    assert (again.code, again.json["upload"], hub.commits()) == (0, [], 1)


@pytest.mark.parametrize(
    ("status", "request_", "words"),
    [
        (401, "GET /api/datasets/", "token"),
        (403, f"POST /api/datasets/{REPO}/commit/", "may not write"),
        (403, "POST /api/repos/create", "may not write"),
        (409, f"POST /api/datasets/{REPO}/commit/", "else is changing"),
        (412, f"POST /api/datasets/{REPO}/commit/", "changed while"),
        (429, "POST /datasets/", "slow down"),
        (500, f"POST /api/datasets/{REPO}/preupload/", "in trouble"),
        (503, "PUT /_lfs/", "in trouble"),
    ],
)
def test_every_refusal_is_said_plainly(ready: Path, hub: HubStandIn, status: int, request_: str, words: str) -> None:
    """Exit 1, one plain sentence with the status, no link, no token; the next push completes."""
    before = {path: path.read_bytes() for path in (ready / "releases").rglob("*") if path.is_file()}
    leak = f"token {TOKEN} is bad, see https://example.org/?sig=abc"
    hub.faults.append(Fault(request_, status=status, times=100, message=leak, headers={"Retry-After": "1"}))
    told = _run(ready, "push")
    assert told.code == 1
    assert words in told.err
    assert str(status) in told.err
    assert TOKEN not in told.out + told.err
    assert "sig=" not in told.err
    assert "Traceback" not in told.err
    assert before == {path: path.read_bytes() for path in (ready / "releases").rglob("*") if path.is_file()}
    hub.faults.clear()
    assert _run(ready, "push").code == 0
    assert _same(ready, hub, "v2")
    assert not any(TOKEN.encode() in path.read_bytes() for path in ready.rglob("*") if path.is_file())


def test_a_hub_that_does_not_answer(ready: Path, hub: HubStandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing listens: exit 1 with a plain sentence; a dry run lists everything and says so."""
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    told = _run(ready, "push")
    assert told.code == 1
    assert "connection to the hub failed" in told.err
    dry = _run(ready, "push", "--dry-run", "--json")
    assert dry.code == 0
    assert len(dry.json["upload"]) == 6
    assert "could not be asked" in dry.json["notes"][0]


def test_a_takedown_blocks_and_the_next_release_replaces_it(ready: Path, hub: HubStandIn) -> None:
    """A newer takedown blocks; after a new export only what changed is sent, files not ours stay, and its rows are gone."""
    assert _run(ready, "push").code == 0
    hub.repos[REPO].files["LICENSE.md"] = hub.repos[REPO].files["domains.csv"]
    hub.repos[REPO].files["data/crawl_id=2020-01/train-00000-of-00001.parquet"] = hub.repos[REPO].files["TOMBSTONES.parquet"]
    project = project_of(ready)
    domain = _run(ready, "sql", "--json", "SELECT domain FROM records GROUP BY 1 ORDER BY count(*), 1 LIMIT 1").json["rows"][0][0]
    project.control.append("takedown", at=1.0, kind="domain", value=domain, reason="asked")
    blocked = _run(ready, "push", "--json")
    assert blocked.code == 1
    assert "takedown" in blocked.json["blocked"][0]
    assert hub.commits() == 1
    assert _run(ready, "export", "--name", "v3").code == 0
    hub.log.clear()
    told = _run(ready, "push", "--json")
    assert told.code == 0, told
    assert told.json["delete"] == ["data/crawl_id=2020-01/train-00000-of-00001.parquet"]
    assert hub.commits() == 1
    assert "LICENSE.md" in hub.repos[REPO].files
    del hub.repos[REPO].files["LICENSE.md"]
    assert _same(ready, hub, "v3")
    assert domain.encode() not in hub.repos[REPO].files["domains.csv"].data


def test_an_incomplete_card_blocks(folder: Path, hub: HubStandIn) -> None:
    """The demo's first release has no human words: blocked with the lines; words written into the card itself unblock it."""
    told = _run(folder, "push", "--json")
    assert told.code == 1
    assert "card" in told.json["blocked"][0]
    assert told.json["commit"] is None
    assert not hub.log
    card = folder / "releases" / "v1" / "README.md"
    card.write_text(card.read_text("utf-8").replace(TO_DO, "said by a person"), "utf-8")
    assert _run(folder, "push").code == 0


@pytest.mark.parametrize("damage", ["shard", "missing", "extra", "manifest", "licence"])
def test_disagreement_blocks(ready: Path, hub: HubStandIn, damage: str) -> None:
    """Whatever is not what the manifest says is named, and nothing is sent."""
    project = project_of(ready)
    release = project.layout.release_dir(newest_release(project).key)
    shard = next(release.glob("data/*/*.parquet"))
    extra: tuple[str, ...] = ()
    match damage:
        case "shard":
            data = bytearray(shard.read_bytes())
            data[100] ^= 1
            shard.write_bytes(data)
        case "missing":
            shard.unlink()
        case "extra":
            (shard.parent / "train-00009-of-00001.parquet").write_bytes(b"x")
        case "manifest":
            manifest = json.loads((release / "manifest.json").read_text())
            (release / "manifest.json").write_text(json.dumps(manifest | {"rows": 1}))
        case _:
            extra = ("--set", "publish.license=mit")
    told = _run(ready, "push", "--json", *extra)
    assert told.code == 1
    assert len(told.json["blocked"]) == 1
    assert not hub.log


def test_what_arrived_otherwise_is_an_error(ready: Path, hub: HubStandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hub that stores other bytes than it was sent is found out by the digests."""
    monkeypatch.setattr("corpus.app.push.file_sha256", lambda path: hashlib.sha256(path.read_bytes()).hexdigest())
    assert _run(ready, "push").code == 0
    stored = hub.repos[REPO].files["domains.csv"]
    stored.data = b"x" * len(stored.data)
    monkeypatch.setattr("corpus.app.hub.Hub.upload", lambda *_, **__: hub.repos[REPO].commits[-1])
    told = _run(ready, "push")
    assert told.code == 1
    assert "domains.csv" in told.err


def test_words_for_the_card_are_part_of_the_release(ready: Path) -> None:
    """They stand in the card with the repository's name, nothing waits any more, and a replay without the file gives the same bytes."""
    card = (ready / "releases" / "v2" / "README.md").read_text("utf-8")
    assert card.count("words of a person") == 7
    assert TO_DO not in card
    assert f'load_dataset("{REPO}"' in card
    (ready / "card.toml").unlink()
    assert corpus_cli("replay", "-c", ready / "corpus.toml", "v2").code == 0
    assert corpus_cli("verify", "-c", ready / "corpus.toml").code == 0


def test_words_for_the_card_are_checked(folder: Path) -> None:
    """An unknown part or a bad repository is a mistake of the configuration, found before anything is sent."""
    (folder / "card.toml").write_text('abuot = "x"', "utf-8")
    told = _run(folder, "push")
    assert told.code == 2
    assert "abuot" in told.err
    (folder / "card.toml").write_text(CARD, "utf-8")
    assert _run(folder, "push", "--set", "publish.repo=nobody").code == 2


def test_after_a_takedown_only_changed_shards_travel(exported: Path, hub: HubStandIn, tmp_path: Path) -> None:
    """Shards that held its rows are sent anew or deleted; all others stay, also where their number has changed."""
    folder = Path(shutil.copytree(exported, tmp_path / "corpus"))
    small = ("--set", "export.shard_bytes=8KiB")
    assert _run(folder, "export", "--name", "v3", *small).code == 0
    assert _run(folder, "push").code == 0
    before = {path: stored.oid for path, stored in hub.repos[REPO].files.items() if stored.large}
    assert len(before) > 4, "there is more than one shard"
    domain = _run(folder, "sql", "--json", "SELECT max(domain) FROM records").json["rows"][0][0]
    project_of(folder).control.append("takedown", at=1.0, kind="domain", value=domain, reason="asked")
    assert _run(folder, "export", "--name", "v4", *small).code == 0
    hub.log.clear()
    told = _run(folder, "push", "--json").json
    after = {path: stored.oid for path, stored in hub.repos[REPO].files.items() if stored.large}
    assert set(hub.uploads()) == set(after.values()) - set(before.values())
    assert len(set(after.values()) & set(before.values())) > len(after) / 2, "most shards are the same files, and do not travel"
    assert set(told["delete"]) == set(before) - set(after)
    assert _same(folder, hub, "v4")


def test_what_a_takedown_superseded_travels_as_little_as_it_can(exported: Path, hub: HubStandIn, tmp_path: Path) -> None:
    """`takedown apply` makes v3.1: the push sends its changed shard and its side files, and everything else is unchanged."""
    folder = Path(shutil.copytree(exported, tmp_path / "corpus"))
    assert _run(folder, "export", "--name", "v3", "--set", "export.shard_bytes=8KiB").code == 0
    assert _run(folder, "push").code == 0
    before = {stored.oid for stored in hub.repos[REPO].files.values() if stored.large}
    url = _run(folder, "sql", "--json", "SELECT url FROM records ORDER BY url LIMIT 1").json["rows"][0][0]
    assert _run(folder, "takedown add", url, "--reason", "asked").code == 0
    assert _run(folder, "push").code == 1, "an unapplied takedown blocks"
    assert _run(folder, "takedown apply").code == 0
    hub.log.clear()
    told = _run(folder, "push", "--json")
    assert told.code == 0, told
    assert told.json["release"] == "v3.1"
    sent = [item["path"] for item in told.json["upload"] if item["path"].startswith("data/")]
    assert len(sent) == 1
    assert len(set(hub.uploads()) - before) == 2, "one shard, and the list of takedowns"
    assert told.json["unchanged"] >= len(before) - 2
    assert _same(folder, hub, "v3.1")
    assert url.encode() not in b"".join(stored.data for stored in hub.repos[REPO].files.values())

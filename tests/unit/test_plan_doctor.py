"""Before a crawl: what it will take, by a stated model; whether the machine is fit; every problem at once."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus.app import doctor_folders, doctor_machine, doctor_network
from corpus.app.findings import Finding
from corpus.app.forecast import HostLoad, forecast
from corpus.app.plan import _refuses_in_part
from corpus.app.spending import Budget, PausableClock, budget_of
from corpus.config.load import load_config
from corpus.config.tree import Config
from corpus.crawl.ports import Due, HostRow
from corpus.crawl.settings import CrawlSettings
from corpus.crawl.slow import rest_s, slowed
from corpus.model import Consent, Use
from corpus.optout.authority import AuthorityFiles, AuthorityRules, FileState, compile_authority
from corpus.optout.settings import OptoutSettings
from corpus.store.control_log import ControlEntry
from corpus.store.standing_orders import StandingOrders
from tests.demo_corpus import DemoCorpus, corpus_cli

SETTINGS = CrawlSettings()
LOADS = st.lists(
    st.builds(
        lambda n, contacts, gap, floor, ip: HostLoad(f"h{n}.d{n % 3}.test", f"d{n % 3}.test", contacts, max(gap, floor), floor, f"192.0.2.{ip}"),
        st.integers(0, 99), st.integers(1, 3_000), st.floats(1, 20), st.floats(1, 10), st.integers(1, 5),
    ),
    min_size=1, max_size=12,
)  # fmt: skip


def config_of(folder: Path, **crawl: Any) -> Config:
    folder.mkdir(parents=True, exist_ok=True)
    rows = {"contact": "a@example.org", **crawl}
    text = "".join(
        f"{key} = {value if isinstance(value, int | list) else repr(value)}\n".replace("'", '"') for key, value in rows.items()
    )
    (folder / "corpus.toml").write_text(f'[corpus]\nname = "x"\n[crawl]\n{text}', "utf-8")
    return load_config(folder / "corpus.toml", environment={})


# ---- plan


@given(LOADS, st.floats(1, 1_000))
def test_a_forecast_is_its_slowest_bound(loads: list[HostLoad], per_s: float) -> None:
    """Without a budget all contacts are made, and the time is that of the largest bound, which is named."""
    made = forecast(loads, SETTINGS, contacts_per_s=per_s)
    assert made.contacts == sum(load.contacts for load in loads)
    assert made.seconds == max(bound.seconds for bound in made.bounds)
    assert made.bound in {bound.what for bound in made.bounds}
    assert made.seconds >= max(load.contacts * load.floor_s for load in loads) - 1e-6


@given(LOADS, st.integers(0, 5_000))
def test_a_budget_only_ever_shortens(loads: list[HostLoad], most: int) -> None:
    """A budget of contacts is met exactly when it binds; a larger one takes no less time."""
    free = forecast(loads, SETTINGS, contacts_per_s=100.0)
    bound = forecast(loads, SETTINGS, contacts_per_s=100.0, most=most, most_key="crawl.max_pages")
    more = forecast(loads, SETTINGS, contacts_per_s=100.0, most=most + 50, most_key="crawl.max_pages")
    assert bound.contacts <= min(most, free.contacts) or bound.bound != "crawl.max_pages"
    assert bound.seconds <= more.seconds + 1e-6 <= free.seconds + 2e-6


def test_the_first_contacts_of_a_host_are_slower() -> None:
    """A new host begins at delay_start and earns a twentieth of it with each answer: 1,000 contacts at 5 s down to 2 s."""
    load = HostLoad("a.test", "a.test", 1_000, 5.0, 2.0)
    earned = sum(5.0 - 0.25 * n for n in range(12))
    assert load.seconds(5.0) == pytest.approx(earned + 988 * 2.0)
    assert load.done(load.seconds(5.0), 5.0) == 1_000
    assert load.done(earned + 100.0, 5.0) == 62


def test_plan_from_seeds_alone(tmp_path: Path) -> None:
    """Before anything was asked: hosts from the seeds, the most the configuration allows, by the host's gap, and it says what is assumed."""
    config_of(tmp_path, seeds=["http://a.test/", "http://b.test/", "http://www.b.test/x"], max_pages_per_host=500)
    told = corpus_cli("plan", "-c", tmp_path / "corpus.toml", "--json").json
    assert told["hosts"] == {"known": 3, "read": 0, "domains": 2}
    assert told["silent"]["not_asked"] == 3
    now, most = told["scenarios"]
    assert (now["pages"], most["pages"]) == (3, 1_500)
    assert most["bound"].startswith("the domain b.test: 1006 contacts of 2 hosts")
    assert most["seconds"] == pytest.approx(1_006 * 2.0)
    assert most["bytes_wire"] == 1_500 * 30_000
    assert {row["source"] for row in told["assumptions"]} >= {"assumed", "crawl.delay_start"}
    assert not (tmp_path / "corpus.json").exists()


def test_plan_of_a_crawled_folder_uses_what_it_measured(demo_corpus: DemoCorpus) -> None:
    """Costs a page come from the folder's own files; hosts whose statements were read are counted by what they say."""
    told = corpus_cli("plan", "-c", demo_corpus.config, "--pages-per-host", "100", "--json").json
    costs = {row["name"]: row for row in told["assumptions"]}
    assert costs["wire bytes a page"]["source"].startswith("measured here, over 61")
    fetch = demo_corpus.summary.fetch
    assert costs["wire bytes a page"]["value"] == pytest.approx(fetch.bytes_wire / fetch.pages)
    assert told["hosts"]["read"] == told["silent"]["judged"] == 8
    assert [row["scenario"] for row in told["scenarios"]] == ["known now", "100 pages a host", "at most"]
    assert told["scenarios"][0]["pages"] == 0


@pytest.mark.parametrize(
    ("key", "words"), [("max_pages", "crawl.max_pages"), ("max_time", "crawl.max_time"), ("max_bytes", "crawl.max_bytes")]
)
def test_plan_names_the_budget_that_ends_it(tmp_path: Path, key: str, words: str) -> None:
    """With a budget that binds, the plan says which."""
    value = {"max_pages": 40, "max_time": "60s", "max_bytes": "900kB"}[key]
    config_of(tmp_path, seeds=["http://a.test/", "http://b.test/"], **{key: value})
    most = corpus_cli("plan", "-c", tmp_path / "corpus.toml", "--json").json["scenarios"][-1]
    assert most["bound"] == words
    assert most["pages"] <= 60


# ---- orders, folded


def entry(n: int, action: str, value: str = "", **detail: Any) -> ControlEntry:
    return ControlEntry(n, 0.0, action, "", value, detail=detail)


def test_the_latest_order_of_a_kind_holds() -> None:
    """Pause until resume; the largest factor that covers a host; a budget in place of the configuration's, until `config`."""
    standing = StandingOrders()
    standing.apply(
        [
            entry(1, "pause"),
            entry(2, "slow", "one.test", factor=3.0),
            entry(3, "slow", "all", factor=2.0),
            entry(4, "budget", "pages", limit=9.0),
        ]
    )
    assert standing.pause is not None
    assert [standing.factor(host) for host in ("a.one.test", "one.test", "xone.test", "other.test")] == [3.0, 3.0, 2.0, 2.0]
    assert budget_of(CrawlSettings(max_pages=5, max_time="1h"), standing) == Budget(9, None, 3600.0)
    standing.apply(
        [
            entry(5, "resume"),
            entry(6, "slow", "one.test", factor=1.0),
            entry(7, "slow", "all", factor=1.0),
            entry(8, "budget", "pages", limit=None),
        ]
    )
    assert standing.pause is None
    assert (standing.factor("a.one.test"), standing.version) == (1.0, 8)
    assert budget_of(CrawlSettings(max_pages=5), standing).pages == 5


@given(st.one_of(st.none(), st.text(), st.floats(), st.booleans(), st.lists(st.integers())))
def test_a_damaged_order_makes_nothing_faster(value: Any) -> None:
    """Whatever a log holds where a number should be: the factor is never under 1, and no budget is negative."""
    standing = StandingOrders()
    standing.apply([entry(1, "slow", "all", factor=value), entry(2, "budget", "pages", limit=value)])
    assert standing.factor("a.test") >= 1.0
    assert all(limit > 0 for limit in standing.budgets.values())


@given(st.floats(0.5, 100), st.floats(0, 60), st.floats(1, 500), st.floats(0, 2_000))
def test_slower_is_never_sooner(pace_s: float, wait_s: float, factor: float, since_s: float) -> None:
    """A factor only ever lengthens waits, counts from the end of the last contact, and 1 changes nothing."""
    row = HostRow("a.test", "a.test", pace_s=pace_s, due=Due(1_000.0, wait_s), domain_due=Due(1_000.0, wait_s))
    after = slowed(row, factor, SETTINGS)
    assert after.due.wait_s >= row.due.wait_s
    assert after.domain_due.wait_s >= row.domain_due.wait_s
    assert after.due.set_at == row.due.set_at
    assert rest_s(row, factor, SETTINGS, 1_000.0 + since_s) >= factor * max(pace_s, 2.0) - since_s - 1e-6 or factor <= 1.0
    assert slowed(row, 1.0, SETTINGS) == row
    assert rest_s(row, 1.0, SETTINGS, 1_000.0) == 0.0


def test_paused_time_is_no_run_time() -> None:
    """The budget of time counts the time in which the crawl ran."""
    now = [0.0]
    clock = PausableClock(lambda: now[0])
    for at, paused in ((10.0, True), (60.0, True), (100.0, False)):
        now[0] = at
        clock.pause(paused)
    now[0] = 105.0
    assert clock.seconds() == 15.0


# ---- doctor and check


def state_of(findings: list[Finding], name: str) -> str:
    return next(found.state for found in findings if found.name == name)


def test_a_fit_machine_has_no_faults(tmp_path: Path) -> None:
    """On the machine that runs the tests everything that can be looked at is well; exit 0, and JSON says the same."""
    config_of(tmp_path / "corpus", seeds=["http://192.0.2.1/"])
    said = corpus_cli("doctor", "-c", tmp_path / "corpus" / "corpus.toml", "--json")
    assert said.code == 0, said.out
    assert said.json["ok"] is True
    assert {"python", "packages", "handles", "memory", "clock", "store.root", "store.local sync", "store.local locks", "dns"} <= {
        found["name"] for found in said.json["findings"]
    }
    assert list((tmp_path / "corpus").iterdir()) == [tmp_path / "corpus" / "corpus.toml"]


def test_a_folder_that_cannot_be_written_is_a_fault(tmp_path: Path) -> None:
    """A file where the folder should be: doctor ends with 1, check names the key and its line."""
    config_of(tmp_path, seeds=["http://8.8.8.8/"])
    (tmp_path / "taken").write_text("x", "utf-8")
    line = ["-c", str(tmp_path / "corpus.toml"), "--set", 'store.root="taken"']
    assert corpus_cli("doctor", *line).code == 1
    problems = corpus_cli("check", *line, "--json").json["problems"]
    assert {p["key"] for p in problems} == {"store.root", "store.local"}


def test_few_file_handles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hard limit under what the slots need stops `check`; one that is merely tight is a warning of `doctor`."""
    config = config_of(tmp_path, slots=300)
    for hard, state in ((400, "fault"), (1_000, "warn"), (4_000, "ok")):
        monkeypatch.setattr("resource.getrlimit", lambda _, hard=hard: (hard, hard))
        assert doctor_machine.handles(config).state == state


def test_a_clock_behind_the_disk_is_a_fault(tmp_path: Path) -> None:
    """A folder that was written in the future: the clock is wrong, or was; either way no time in it can be trusted."""
    config = config_of(tmp_path)
    assert all(found.state != "fault" for found in doctor_machine.clock(config))
    (tmp_path / "corpus.json").write_text("{}", "utf-8")
    os.utime(tmp_path / "corpus.json", (time.time() + 9_000,) * 2)
    assert [found.state for found in doctor_machine.clock(config)] == ["fault"]
    (tmp_path / "corpus.json").unlink()
    (tmp_path / "runs" / "20990101T000000Z-1").mkdir(parents=True)
    assert [found.state for found in doctor_machine.clock(config)] == ["fault"]


@pytest.fixture
def deaf() -> Iterator[int]:
    """A port on which nothing answers: bound, and read by nobody."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))
        yield sock.getsockname()[1]


def test_a_name_server_that_does_not_answer(tmp_path: Path, deaf: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is asked, waited for a moment, and named; names that do not exist are only worth a warning."""
    from corpus.crawl.dns_wire import decode, encode_response

    monkeypatch.setattr(doctor_network, "TRY_S", 0.2)
    config = config_of(tmp_path, seeds=["http://a.test/"], resolver=[f"127.0.0.1:{deaf}"])
    (found,) = doctor_network.resolvers(config, wanted=False)
    assert (found.state, found.key) == ("fault", "crawl.resolver")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))

        def answer() -> None:
            for _ in range(2):
                query, client = server.recvfrom(512)
                server.sendto(encode_response(decode(query), 3, ()), client)

        threading.Thread(target=answer, daemon=True).start()
        config = config_of(tmp_path, seeds=["http://a.test/"], resolver=[f"127.0.0.1:{server.getsockname()[1]}"])
        assert [found.state for found in doctor_network.resolvers(config)] == ["warn"]


def test_services_are_reached_or_named(tmp_path: Path) -> None:
    """PostgreSQL and S3 are asked for a connection where the configuration names them, and only there."""
    config = config_of(tmp_path)
    assert list(doctor_network.services(config)) == []
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        store = config.store.model_copy(
            update={"frontier": "postgresql://u@127.0.0.1:9/x", "s3_endpoint": f"http://127.0.0.1:{port}"}
        )
        found = list(doctor_network.services(config.model_copy(update={"store": store})))
    assert [(f.name, f.state) for f in found] == [("postgresql", "fault"), ("s3", "ok")]


def test_a_token_is_asked_for_only_to_publish(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without publish.repo nobody needs one; with it, its absence is a fault, and its value is shown nowhere."""
    config = config_of(tmp_path)
    assert list(doctor_network.hub_token(config)) == []
    wanted = config.model_copy(update={"publish": config.publish.model_copy(update={"repo": "a/b"})})
    monkeypatch.setattr("huggingface_hub.get_token", lambda: None)
    assert state_of(list(doctor_network.hub_token(wanted)), "hub") == "fault"
    monkeypatch.setattr("huggingface_hub.get_token", lambda: "hf_secret")
    (found,) = doctor_network.hub_token(wanted)
    assert found.state == "ok"
    assert "secret" not in str(found)


def test_two_packages_that_bring_fasttext(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rival of the language model's package breaks it silently, so both are named."""
    monkeypatch.setattr(
        "importlib.metadata.packages_distributions", lambda: {"fasttext": ["fasttext-community", "fasttext-wheel"]}
    )
    assert [found.state for found in doctor_machine.packages()] == ["fault"]


def test_check_tells_everything_at_once(tmp_path: Path) -> None:
    """A wrong value, a missing contact, a folder that is none, too many slots, a dead name server: one list."""
    (tmp_path / "taken").write_text("x", "utf-8")
    (tmp_path / "corpus.toml").write_text(
        '[corpus]\nname = "x"\n[crawl]\nseeds = ["http://a.test/"]\nslots = 9000000\nresolver = ["127.0.0.1:9"]\ndelay = "soon"\n[store]\nroot = "taken"\n',
        "utf-8",
    )
    said = corpus_cli("check", "-c", tmp_path / "corpus.toml", "--json")
    assert said.code == 2
    assert {p["key"] for p in said.json["problems"]} == {
        "crawl.delay",
        "crawl.contact",
        "store.root",
        "store.local",
        "crawl.slots",
        "crawl.resolver",
    }
    assert {p["key"]: p["line"] for p in said.json["problems"]}["crawl.slots"] == 5


def test_a_slow_disk_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sync that takes longer than a group commit can bear is a warning, one of seconds a fault."""
    config = config_of(tmp_path)
    ticks = iter(range(10_000))
    for step, state in ((0.2, "warn"), (2.0, "fault")):
        monkeypatch.setattr("corpus.app.doctor_folders.time.perf_counter", lambda step=step: next(ticks) * step)
        assert state_of(list(doctor_folders.folders(config)), "store.root sync") == state


@pytest.mark.parametrize(
    ("robots", "tdmrep", "refuses"),
    [
        (b"User-agent: *\nDisallow: /admin/\n", None, False),
        (b"User-agent: *\nContent-Usage: /art/ train-ai=n\n", None, True),
        (b"User-agent: *\nAllow: /\n", b'[{"location": "/photos/*", "tdm-reservation": 1}]', True),
        (b"User-agent: *\nAllow: /\n", b'[{"location": "/photos/*", "tdm-reservation": 0}]', False),
        (b"", None, False),
    ],
)
def test_a_refusal_of_a_part_is_no_silence(robots: bytes, tdmrep: bytes | None, refuses: bool) -> None:
    """A statement limited to some path counts, whichever protocol makes it; a robots.txt that closes a path says nothing of training."""
    files = AuthorityFiles(
        robots=FileState("ok", 1.0, body=robots, url="http://a.test/robots.txt"),
        tdmrep=FileState("ok", 1.0, body=tdmrep, url="http://a.test/.well-known/tdmrep.json") if tdmrep else None,
    )
    rules = compile_authority(files, OptoutSettings(), "CorpusBot")

    class Judge:
        def rules(self, authority: str) -> tuple[AuthorityRules, float]:
            return rules, 1.0

        def consent(self, url: str, said: list[Any]) -> tuple[Consent, float]:
            return rules.judge(url, 1.0), 1.0

    assert rules.judge("http://a.test/", 1.0).use is not Use.NO
    assert _refuses_in_part(Judge(), "http://a.test") is refuses  # type: ignore[arg-type]

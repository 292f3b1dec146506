"""The simulated web is the same every time, says what it expects, and its clock is in order."""

from __future__ import annotations

import asyncio
import pickle
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus.errors import UsageError
from corpus.model import UrlState
from corpus.reasons import REASONS
from corpus.testing.clock import VirtualClock
from corpus.testing.web import Robots, SimHost, SimWeb, Throttle, Trait, address_of, plain_hosts, zoo
from corpus.testing.web_answer import Counts
from corpus.testing.web_text import LANGUAGES, paragraphs


def ask(
    web: SimWeb, host: str, target: str, counts: Counts | None = None, at: float = 0.0
) -> tuple[int, bytes, dict[str, str], str]:
    answer = web.answer((counts or Counts()).ask(host, target, {}, at=at, wall=1_800_000_000.0 + at))
    return answer.status, answer.body, dict(answer.headers), answer.tag


@given(st.integers(0, 10**9), st.sampled_from(LANGUAGES), st.integers(1, 3000))
def test_prose_is_stable_and_long_enough(seed: int, language: str, size: int) -> None:
    """The same key gives the same text, no brace is left, and the size is reached."""
    text = paragraphs(seed, "key", language, size)
    assert text == paragraphs(seed, "key", language, size)
    assert sum(map(len, text)) >= size
    assert "{" not in "".join(text)


def test_pages_share_few_word_sequences() -> None:
    """No duplicate filter may take two pages for copies: word-5-shingle Jaccard stays far below a threshold."""

    def shingles(key: str) -> set[tuple[str, ...]]:
        words = " ".join(paragraphs(1, key, "en", 2500)).split()
        return set(zip(*(words[n:] for n in range(5)), strict=False))

    made = [shingles(f"k{n}") for n in range(12)]
    worst = max(len(a & b) / len(a | b) for i, a in enumerate(made) for b in made[:i])
    assert worst < 0.2


def test_a_web_is_its_seed() -> None:
    """Two webs of one seed answer alike, another seed does not, and a pickled one is the same web."""
    hosts = (SimHost("a.test", address_of(0), traits=(Trait.COPIES, Trait.CODINGS)), SimHost("b.test", address_of(1)))
    webs = [SimWeb(5, hosts), SimWeb(5, hosts), pickle.loads(pickle.dumps(SimWeb(5, hosts)))]
    for path in ("/", "/p/0001", "/copy/near", "/coding/zstd"):
        assert len({ask(web, "a.test", path)[1] for web in webs}) == 1
        assert ask(SimWeb(6, hosts), "a.test", path)[1] != ask(webs[0], "a.test", path)[1]
    assert ask(webs[0], "a.test", "/copy/original")[1] == ask(webs[0], "a.test", "/copy/twin")[1]
    assert ask(webs[0], "a.test", "/none")[0] == 404
    assert ask(webs[0], "elsewhere.test", "/")[0] == 421


def test_the_zoo_has_every_kind_and_its_truth_uses_known_codes() -> None:
    """One host per robots.txt and per family; expectations use the frozen states and reason codes."""
    web = SimWeb(1, zoo())
    assert {h.robots for h in web.hosts} == set(Robots)
    assert {t for h in web.hosts for t in h.traits} == set(Trait)
    assert len({h.address for h in web.hosts}) == len(web.hosts)
    truth = web.expected()
    assert {code for seen in truth.values() for code in seen.reasons} <= set(REASONS)
    assert truth[web.url("robots-part.test", "/private/1")].requested is False
    assert truth[web.url("robots-all.test")].state is UrlState.REFUSED
    assert truth[web.url("nxdomain.test")].reasons[0] == "dns"
    assert web.url("robots-all.test", "/p/0001") not in truth
    assert web.maze_urls()


def test_every_page_of_a_host_can_be_found() -> None:
    """From the index by links alone, each ordinary page is reached."""
    web = SimWeb(3, plain_hosts(1, 40, links=4))
    host, seen, queue = web.hosts[0].name, set[str](), ["/"]
    while queue:
        path = queue.pop()
        if path not in seen:
            seen.add(path)
            body = ask(web, host, path)[1].decode()
            queue += [part.partition('"')[0] for part in body.split('href="/')[1:] for part in ["/" + part]]
    assert {f"/p/{n:04d}" for n in range(1, 41)} <= seen


@pytest.mark.parametrize(("form", "header"), [("seconds", "3"), ("date", "GMT"), ("past", "GMT"), ("none", "")])
def test_a_throttled_host_notes_who_comes_early(form: str, header: str) -> None:
    """After so many contacts it refuses for a while; a contact inside the while is `early`, one after it is served."""
    web = SimWeb(1, (SimHost("a.test", address_of(0), throttle=Throttle(after=2, wait_s=3.0, form=form)),))
    counts = Counts()
    statuses = [ask(web, "a.test", "/", counts, at=float(n)) for n in range(3)]
    assert [s[0] for s in statuses] == [200, 200, 429]
    assert header in statuses[2][2].get("Retry-After", "")
    if form != "past":
        assert ask(web, "a.test", "/", counts, at=3.0)[3] == "early"
    assert ask(web, "a.test", "/", counts, at=5.1)[0] == 200


def test_mazes_have_no_end() -> None:
    """Each page of a maze leads deeper, for any path a crawler may make up."""
    web = SimWeb(1, (SimHost("a.test", address_of(0), traits=(Trait.CALENDAR, Trait.LOOPING_PATH, Trait.SESSIONS, Trait.SLUGS)),))
    for target, inside in [
        ("/calendar?month=812", "/calendar?month=813"),
        ("/calendar?month=\xb2", "/calendar?month=2"),
        ("/loop/a/b/a/b/", "/loop/a/b/a/b/a/b/"),
        ("/session/3;jsessionid=0a", ";jsessionid="),
        ("/article/a-title-77", "/article/a-title-78"),
    ]:
        status, body, _, _ = ask(web, "a.test", target)
        assert status == 200
        assert inside in body.decode()


# -- the clock ------------------------------------------------------------------------------------------------------
@given(st.lists(st.integers(0, 50), min_size=1, max_size=20))
def test_sleepers_wake_by_time_then_by_order(waits: list[int]) -> None:
    """Waking order is (time, who asked first); the clock ends at the longest sleep; no real time passes."""
    clock, woken = VirtualClock(), []

    async def sleeper(number: int, wait: int) -> None:
        await clock.sleep(wait * 100.0)
        woken.append((clock.monotonic(), number))

    async def main() -> None:
        await asyncio.gather(*(sleeper(n, w) for n, w in enumerate(waits)))

    clock.run(main())
    assert woken == sorted((w * 100.0, n) for n, w in enumerate(waits))
    assert clock.wall() - 1_800_000_000.0 == clock.monotonic() == max(waits) * 100.0


def test_the_loops_own_timers_live_on_virtual_time() -> None:
    """`asyncio.sleep`, `asyncio.timeout` and `call_later` jump with the clock; a timeout fires at its time."""
    clock, began = VirtualClock(), time.monotonic()

    async def main() -> float:
        await asyncio.sleep(3600)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(50):
                await clock.sleep(10_000)
        return clock.monotonic()

    assert clock.run(main()) == 3650
    assert time.monotonic() - began < 60.0, "not the hour it was told, however busy the machine"


def test_time_stands_still_while_a_thread_works() -> None:
    """Work in an executor takes no virtual time, however long it really takes."""
    clock = VirtualClock()

    async def main() -> float:
        sleeper = asyncio.create_task(clock.sleep(5))
        await asyncio.to_thread(time.sleep, 0.05)
        at = clock.monotonic()
        await sleeper
        return at

    assert clock.run(main()) == 0.0


def test_the_clock_refuses_to_stand_still_for_ever() -> None:
    """Sleeping outside `run` is an error, not a hang; the wall clock can be set without moving the other."""
    with pytest.raises(UsageError):
        asyncio.run(VirtualClock().sleep(1))
    clock = VirtualClock()
    clock.jump(-3600)
    assert (clock.wall(), clock.monotonic()) == (1_800_000_000.0 - 3600, 0.0)

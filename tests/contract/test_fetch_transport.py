"""One contract for every `Transport`: real sockets against the simulated server, and the simulation without sockets."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import pytest

from corpus.crawl.fetch import HttpTransport
from corpus.crawl.ports import Request, Transport
from corpus.crawl.settings import CrawlSettings
from corpus.model import Failed, Failure, FetchResult, Kind, Response
from corpus.testing.clock import VirtualClock
from corpus.testing.transport import SimTransport
from corpus.testing.web import Contact, SimHost, SimWeb, Trait, address_of

FAST = CrawlSettings(
    contact="ops@example.org",
    allow_private=("127.0.0.0/8",),
    connect_timeout=1.0,
    first_byte_timeout=0.5,
    idle_timeout=0.4,
    total_timeout=2.0,
    max_body=1_000_000,
)
Job = Callable[[Transport], Coroutine[Any, Any, list[FetchResult]]]


def over_sockets(web: SimWeb, job: Job, settings: CrawlSettings) -> tuple[list[FetchResult], list[Contact]]:
    async def main() -> tuple[list[FetchResult], list[Contact]]:
        async with web.serve() as server:
            transport = HttpTransport(settings)
            results = await job(transport)
            await transport.close()
        return results, server.log

    return asyncio.run(main())


def in_memory(web: SimWeb, job: Job, settings: CrawlSettings) -> tuple[list[FetchResult], list[Contact]]:
    clock = VirtualClock()
    transport = SimTransport(web, clock, settings)

    async def main() -> list[FetchResult]:
        results = await job(transport)
        await transport.close()
        return results

    return clock.run(main()), transport.log


@pytest.fixture(params=[over_sockets, in_memory], ids=["sockets", "memory"])
def fetching(request: pytest.FixtureRequest) -> Callable[..., tuple[list[FetchResult], list[Contact]]]:
    """`fetching(host, paths, kind=…, headers=…)` → results in order, and the server's log."""

    def fetch(
        host: SimHost, paths: Sequence[str], *, settings: CrawlSettings = FAST, **more: Any
    ) -> tuple[list[FetchResult], list[Contact]]:
        web = SimWeb(7, (host,))

        async def job(transport: Transport) -> list[FetchResult]:
            asks = [Request(web.url(host, path), host.name, host.address, **more) for path in paths]
            return list(await asyncio.gather(*(transport.fetch(ask) for ask in asks)))

        return request.param(web, job, settings)

    return fetch


def host(*traits: Trait, **more: Any) -> SimHost:
    return SimHost("a.test", address_of(0), traits=traits, **more)


def test_a_page_comes_back_whole_and_the_request_is_known(fetching: Any) -> None:
    """Status, headers in order and case, body, address, and the very bytes that were sent."""
    (page,), (contact,) = fetching(host(), ["/p/0001"])
    assert isinstance(page, Response)
    assert (page.status, page.raw_status, page.ip, page.truncated, page.tls) == (200, "HTTP/1.1 200 OK", address_of(0), "", "")
    assert [name for name, _ in page.headers] == ["Date", "Content-Type", "Content-Length"]
    assert page.body == page.decoded
    assert page.decoded.startswith(b"<!DOCTYPE html>")
    assert page.raw_request.decode("latin-1") == contact.request
    assert page.ended_at >= page.started_at
    assert page.latency_s > 0
    assert contact.agent == "CorpusBot/0.1.0 (+ops@example.org)"
    assert "cookie" not in contact.request.lower()


def test_redirects_and_refusals_are_answers(fetching: Any) -> None:
    """No hop is followed, no cookie kept, and a 4xx is a response with its body, not a failure."""
    results, log = fetching(
        host(Trait.REDIRECTS, Trait.STATUSES), ["/r/self", "/r/nowhere", "/status/403", "/status/402", "/none"]
    )
    assert [r.status for r in results] == [302, 302, 403, 402, 404]
    assert results[0].header("location") == "/r/self"
    assert len(log) == 5
    assert all("seen=1" not in contact.request for contact in log)


@pytest.mark.parametrize("coding", ["gzip", "deflate", "deflate-raw", "br", "zstd", "nested", "chunked", "closed"])
def test_every_coding_is_kept_as_sent_and_decoded_beside(fetching: Any, coding: str) -> None:
    """`body` stays encoded, `decoded` is the page, whatever the coding and the framing."""
    (page,), _ = fetching(host(Trait.CODINGS), [f"/coding/{coding}"])
    assert isinstance(page, Response)
    assert b"</html>" in page.decoded
    assert len(page.body) < len(page.decoded)
    assert page.header("content-encoding")
    assert not page.truncated


@pytest.mark.parametrize(
    ("path", "failure", "seconds"),
    [
        ("/broken/reset", Failure.RESET, 0.5),
        ("/broken/close", Failure.RESET, 0.5),
        ("/broken/silent", Failure.TIMEOUT, 0.9),
        ("/broken/garbage", Failure.PROTOCOL, 0.5),
        ("/broken/endless-head", Failure.PROTOCOL, 0.9),
        ("/broken/drip-head", Failure.TIMEOUT, 0.9),
        ("/broken/drip", Failure.TIMEOUT, 1.0),
        ("/broken/silent-body", Failure.TIMEOUT, 1.0),
        ("/broken/not-gzip", Failure.DECODE, 0.5),
    ],
)
def test_a_broken_server_is_a_failure_within_its_limit(fetching: Any, path: str, failure: Failure, seconds: float) -> None:
    """Each way of not answering ends by the limit made for it, in one contact."""
    (failed,), log = fetching(host(Trait.BROKEN), [path])
    assert isinstance(failed, Failed), failed
    assert failed.failure is failure
    assert failed.ended_at - failed.started_at < seconds + 0.6  # the machine may be busy
    assert failed.ip == address_of(0)
    assert len(log) == 1


def test_a_slow_drip_is_too_slow(fetching: Any) -> None:
    """Bytes that keep coming, but fewer than the minimum throughput, do not hold a slot until the total timeout."""
    (failed,), _ = fetching(dripping(4, 0.05), ["/p/0001"])
    assert isinstance(failed, Failed)
    assert failed.failure is Failure.TOO_SLOW
    assert failed.ended_at - failed.started_at < 1.5


def dripping(size: int, pause: float) -> SimHost:
    return SimHost("drip.test", address_of(3), traits=(), latency_s=0.0, page_bytes=2000, drip=(size, pause))


def test_a_body_that_breaks_off_is_kept_and_marked(fetching: Any) -> None:
    """Half a page is half a page: `disconnect`, with or without a Content-Length that says so."""
    results, _ = fetching(host(Trait.BROKEN), ["/broken/cut", "/broken/cut-chunked"])
    assert [r.truncated for r in results] == ["disconnect", "disconnect"]
    assert all(r.decoded for r in results)


def test_an_endless_body_is_cut_at_the_cap(fetching: Any) -> None:
    """Reading stops at the cap, and where it is cut depends on the bytes alone."""
    (page,), _ = fetching(host(Trait.BROKEN), ["/broken/endless-body"])
    assert isinstance(page, Response)
    assert page.truncated == "length"
    assert len(page.decoded) == len(page.body) == FAST.max_body


@pytest.mark.parametrize("coding", ["gzip", "br", "zstd", "deflate", "nested"])
def test_a_bomb_is_cut_or_refused(fetching: Any, coding: str) -> None:
    """128 MB in a few kB: cut at the size cap, or refused past the ratio; never decoded."""
    patient = FAST.model_copy(update={"first_byte_timeout": 10.0, "idle_timeout": 10.0, "total_timeout": 20.0})
    (result,), _ = fetching(host(Trait.BOMBS), [f"/bomb/{coding}"], settings=patient)  # the bomb is packed meanwhile
    if isinstance(result, Response):
        assert result.truncated == "length"
        assert len(result.decoded) == FAST.max_body
    else:
        assert result.failure is Failure.DECODE


def test_an_unwanted_type_stops_at_the_head(fetching: Any) -> None:
    """Media is not downloaded: the head is enough, and the status is known."""
    results, _ = fetching(host(Trait.TYPES), ["/type/image", "/type/pdf", "/type/json", "/type/plain"])
    assert [getattr(r, "failure", None) for r in results] == [Failure.CONTENT_TYPE] * 3 + [None]
    assert results[0].status == 200
    assert "image/png" in results[0].detail


def test_types_do_not_matter_to_other_kinds(fetching: Any) -> None:
    """A sitemap or an authority file is read whatever it calls itself."""
    (file,), _ = fetching(host(Trait.TYPES), ["/type/json"], kind=Kind.TDMREP)
    assert isinstance(file, Response)
    assert file.decoded == b'{"a": 1}'


def test_a_conditional_request_is_answered_without_a_body(fetching: Any) -> None:
    """If-None-Match goes out as given; 304 has no body."""
    (page,), _ = fetching(host(Trait.CONDITIONAL), ["/etag/1"])
    (again,), (contact,) = fetching(host(Trait.CONDITIONAL), ["/etag/1"], headers=(("If-None-Match", page.header("etag")),))
    assert (again.status, again.body) == (304, b"")
    assert "If-None-Match: " in contact.request


def test_a_refused_connection_is_a_failure(fetching: Any) -> None:
    """Nobody listens: CONNECT, and the server saw nothing."""
    (failed,), log = fetching(host(down=True), ["/"])
    assert failed.failure is Failure.CONNECT
    assert log == []


@pytest.mark.parametrize(
    "url", ["http://127.1.0.9/", "http://2130706433/", "http://[::ffff:10.0.0.1]/", "ftp://a.test/", "http://", "http://a b/"]
)
def test_a_url_that_is_not_the_vetted_place_is_never_asked(fetching: Any, url: str) -> None:
    """An address in the URL must be the vetted one, in whatever spelling; what is no http URL is a failure."""
    web = SimWeb(7, (host(),))

    async def job(transport: Transport) -> list[FetchResult]:
        return [await transport.fetch(Request(url, "a.test", address_of(0)))]

    for play in (over_sockets, in_memory):
        (failed,), log = play(web, job, FAST)
        assert isinstance(failed, Failed)
        assert failed.failure in {Failure.ADDRESS, Failure.PROTOCOL}
        assert log == []


def test_authority_files_are_read_to_512_kib(fetching: Any) -> None:
    """A huge robots.txt is cut past what must be read, and says so."""
    from corpus.testing.web import Robots

    (file,), _ = fetching(host(robots=Robots.HUGE), ["/robots.txt"], kind=Kind.ROBOTS)
    assert file.truncated == "length"
    assert len(file.decoded) == 512 * 1024

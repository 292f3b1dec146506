"""What only real sockets show: the address, TLS, connections kept and closed, two thousand in flight, memory."""

from __future__ import annotations

import asyncio
import json
import shutil
import ssl
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from corpus.crawl import fetch_session
from corpus.crawl.fetch import HttpTransport
from corpus.crawl.ports import Request
from corpus.crawl.settings import CrawlSettings
from corpus.model import Failed, Failure, Response
from corpus.testing.web import SimHost, SimServer, SimWeb, Trait, address_of, plain_hosts

SETTINGS = CrawlSettings(contact="ops@example.org", allow_private=("127.0.0.0/8",), connect_timeout=5.0, first_byte_timeout=5.0)


def serving(
    web: SimWeb,
    job: Callable[[HttpTransport, SimServer], Awaitable[None]],
    settings: CrawlSettings = SETTINGS,
    tls: ssl.SSLContext | None = None,
) -> SimServer:
    async def main() -> SimServer:
        server = web.serve()
        server.tls = tls
        async with server:
            transport = HttpTransport(settings)
            await job(transport, server)
            await transport.close()
        return server

    return asyncio.run(main())


def test_the_vetted_address_is_the_one_connected_to() -> None:
    """The name resolves nowhere; the connection goes to `Request.ip`, and Host stays the name."""
    hosts = (SimHost("nowhere.invalid", address_of(1)), SimHost("other.invalid", address_of(2)))
    web = SimWeb(1, hosts)

    async def job(transport: HttpTransport, server: SimServer) -> None:
        for address in (address_of(1), address_of(2)):
            page = await transport.fetch(Request(web.url("nowhere.invalid"), "nowhere.invalid", address))
            assert isinstance(page, Response)
            assert page.ip == address

    log = serving(web, job).log
    assert [(c.host, c.ip) for c in log] == [("nowhere.invalid", address_of(1)), ("nowhere.invalid", address_of(2))]


def test_connections_are_kept_then_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests to a host share a connection; one that idles too long is closed; no more than the bound lie idle."""
    monkeypatch.setattr(fetch_session, "KEEP_ALIVE_S", 0.3)
    monkeypatch.setattr(fetch_session, "KEEP_ALIVE_MAX", 3)
    web = SimWeb(1, plain_hosts(6, 3))

    async def job(transport: HttpTransport, server: SimServer) -> None:
        first = web.hosts[0]
        for number in (1, 2, 3):
            await transport.fetch(Request(web.url(first, f"/p/000{number}"), first.name, first.address))
        assert len(server.connections) == 1
        for host in web.hosts[1:]:
            await transport.fetch(Request(web.url(host), host.name, host.address))
        await asyncio.sleep(0.05)
        assert len(server.connections) == 3
        assert "Connection: close" in server.log[-1].request
        for _ in range(40):
            await asyncio.sleep(0.1)
            if not server.connections:
                return
        raise AssertionError(f"{len(server.connections)} idle connections were never closed")

    serving(web, job)


def test_a_server_that_hangs_up_between_requests_costs_nothing() -> None:
    """A kept connection that the server closed is not used again; each page is asked for once."""
    host = SimHost("a.test", address_of(0))
    web = SimWeb(1, (host,))

    async def job(transport: HttpTransport, server: SimServer) -> None:
        for number in range(1, 6):
            page = await transport.fetch(Request(web.url(host, f"/p/000{number}"), host.name, host.address))
            assert isinstance(page, Response)
            for connection in list(server.connections):
                connection.transport.close()
            await asyncio.sleep(0.02)

    assert [c.target for c in serving(web, job).log] == [f"/p/000{n}" for n in range(1, 6)]


def test_a_host_that_hangs_up_too_soon_is_met_once() -> None:
    """A request lost with a kept connection is a failure (never silently asked twice), and the last of its kind there."""
    host = SimHost("a.test", address_of(0))
    web = SimWeb(1, (host,))

    async def job(transport: HttpTransport, server: SimServer) -> None:
        outcomes = []
        for number in range(1, 6):
            page = await transport.fetch(Request(web.url(host, f"/p/000{number}"), host.name, host.address))
            outcomes.append(page.failure if isinstance(page, Failed) else None)
            for connection in list(server.connections):
                connection.transport.close()  # and the next request is on its way before we can know
        assert outcomes == [None, Failure.RESET, None, None, None]

    assert len(serving(web, job).log) == 4


@pytest.mark.parametrize(
    ("header", "reused"), [(None, True), ("timeout=5, max=100", True), ("timeout=1", False), ("rubbish", True)]
)
def test_a_server_may_say_how_long_it_keeps(header: str | None, reused: bool) -> None:
    """`Keep-Alive: timeout=…` is believed, with a second of margin."""
    idle = fetch_session.Idle()
    ticket, kept, keep = idle.take(("a", "192.0.2.1", 80), 0.0)
    assert (kept, keep) == (False, True)
    idle.give(("a", "192.0.2.1", 80), ticket, 0.0, header)
    again, kept, _ = idle.take(("a", "192.0.2.1", 80), 0.5)
    assert kept is reused
    assert (again == ticket) is reused


def test_stopping_a_fetch_is_immediate() -> None:
    """A cancelled fetch ends at once as cancelled, and its connection with it."""
    host = SimHost("a.test", address_of(0), traits=(Trait.BROKEN,))
    web = SimWeb(1, (host,))

    async def job(transport: HttpTransport, server: SimServer) -> None:
        task = asyncio.create_task(transport.fetch(Request(web.url(host, "/broken/silent"), host.name, host.address)))
        await asyncio.sleep(0.2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(0.1)
        assert not server.connections

    assert [c.end for c in serving(web, job).log] == ["client-left"]


def test_two_thousand_requests_are_in_flight_together() -> None:
    """One process holds 2,000 of them open at one moment; when the servers hang up, each comes back as a failure."""
    hosts = tuple(SimHost(h.name, h.address, pages=1, latency_s=300.0) for h in plain_hosts(50, 1))
    web = SimWeb(1, hosts)

    async def job(transport: HttpTransport, server: SimServer) -> None:
        asks = [Request(web.url(h, "/p/0001"), h.name, h.address) for h in hosts for _ in range(40)]
        tasks = [asyncio.create_task(transport.fetch(ask)) for ask in asks]
        for _ in range(600):
            await asyncio.sleep(0.05)
            if sum(server.counts.hosts.values()) == 2000:
                break
        assert len(server.connections) == 2000
        assert not any(task.done() for task in tasks)
        await server.stop()
        results = await asyncio.gather(*tasks)
        assert all(isinstance(r, Failed) and r.failure is Failure.RESET for r in results)

    patient = {"connect_timeout": 60.0, "first_byte_timeout": 100.0, "total_timeout": 200.0}
    serving(web, job, SETTINGS.model_copy(update=patient))


_BOMBED = """
import asyncio, json, resource, sys
from corpus.crawl.fetch import HttpTransport
from corpus.crawl.ports import Request
from corpus.crawl.settings import CrawlSettings
from corpus.model import Response

async def main():
    transport = HttpTransport(CrawlSettings(contact="ops@example.org", allow_private=("127.0.0.0/8",)))
    peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    ask = lambda path: transport.fetch(Request(sys.argv[1] + path, "a.test", sys.argv[2]))
    for path in ("/p/0001", "/bomb/plain"):
        await ask(path)
    before, out = peak(), {}
    for coding in ("zstd", "br", "nested", "gzip", "deflate"):
        result = await ask(f"/bomb/{coding}")
        kind = (result.truncated, len(result.decoded)) if isinstance(result, Response) else (result.failure.value, 0)
        out[coding] = (*kind, peak() - before)
    print(json.dumps(out))

asyncio.run(main())
"""


def test_bombs_of_half_a_gigabyte_stay_small() -> None:
    """Each coding's 512 MB costs about the cap in memory, in a process of its own."""
    host = SimHost("a.test", address_of(0), traits=(Trait.BOMBS,), pages=1)
    web = SimWeb(1, (host,))
    with web.serve_in_process() as process:
        run = subprocess.run(
            [sys.executable, "-c", _BOMBED, f"http://a.test:{process.port}", host.address],
            capture_output=True,
            check=True,
            timeout=60,
        )
    seen = json.loads(run.stdout)
    cap = CrawlSettings().max_body
    assert {coding: seen[coding][0] for coding in seen} == {
        "zstd": "decode", "br": "length", "nested": "decode", "gzip": "length", "deflate": "length",
    }  # fmt: skip
    assert all(length in {0, cap} for _, length, _ in seen.values())
    assert max(grown for _, _, grown in seen.values()) < 3 * cap / 2**20 + 8, seen


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A self-signed certificate for `tls.test`."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl command to make a test certificate: apt-get install openssl")
    folder = tmp_path_factory.mktemp("tls")
    key, cert = folder / "key.pem", folder / "cert.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-keyout", key, "-out", cert, "-subj", "/CN=tls.test", "-addext", "subjectAltName=DNS:tls.test"],
        check=True, capture_output=True,
    )  # fmt: skip
    return cert, key


@pytest.mark.parametrize(
    ("name", "settings", "outcome"),
    [
        ("tls.test", {}, Failure.TLS),
        ("tls.test", {"ca_file": True}, "strict"),
        ("other.test", {"ca_file": True}, Failure.TLS),
        ("other.test", {"tls": "lax"}, "lax"),
    ],
)
def test_tls_is_verified_unless_lax_by_choice(
    certificate: tuple[Path, Path], name: str, settings: dict[str, object], outcome: object
) -> None:
    """Chain and name are checked against the system's and the given authorities; lax is recorded on the response."""
    cert, key = certificate
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    asked: list[str | None] = []
    context.sni_callback = lambda _sock, server_name, _ctx: asked.append(server_name)
    web = SimWeb(1, (SimHost(name, address_of(0)),))
    chosen = SETTINGS.model_copy(update={k: str(cert) if k == "ca_file" else v for k, v in settings.items()})

    async def job(transport: HttpTransport, server: SimServer) -> None:
        result = await transport.fetch(Request(f"https://{name}:{server.port}/", name, address_of(0)))
        if isinstance(outcome, Failure):
            assert isinstance(result, Failed)
            assert result.failure is outcome
        else:
            assert isinstance(result, Response)
            assert (result.tls, result.status) == (outcome, 200)

    serving(web, job, chosen, context)
    assert asked == [name]


def test_a_proxy_is_told_the_whole_address() -> None:
    """Plain http through `crawl.proxy`: absolute form, by name, as proxies demand."""
    proxy = SimWeb(1, (SimHost("proxied.test", address_of(0)),))

    async def main() -> str:
        async with proxy.serve() as server:
            settings = SETTINGS.model_copy(update={"proxy": f"http://{address_of(0)}:{server.port}"})
            transport = HttpTransport(settings)
            await transport.fetch(Request("http://proxied.test/x", "proxied.test", "192.0.2.1"))
            await transport.close()
            return server.log[0].target

    assert asyncio.run(main()) == "http://proxied.test/x"

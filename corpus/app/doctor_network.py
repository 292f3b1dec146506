"""What a crawl reaches over the network before it asks a single host: name servers, a database, an object store, the hub.

No page host is contacted. Name servers are asked for an address, a database for a session, other services for a connection.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from corpus.app.findings import Finding, fault, ok, warn
from corpus.config.check import seed_lines, wrong_frontier
from corpus.config.tree import Config
from corpus.crawl.dns_client import Answer, NameServers
from corpus.errors import CorpusError
from corpus.url.canonical import canonical_url
from corpus.url.host import host_of

RESOLV_CONF = Path("/etc/resolv.conf")
TRY_S = 2.0
CONNECT_S = 3.0
NAMES_ASKED = 3
_PORTS = {"postgresql": 5432, "postgres": 5432, "https": 443, "http": 80}


def name_servers(config: Config) -> tuple[str, ...]:
    """`IP:PORT` of the servers a crawl asks: the configured ones, or those of the system."""
    if config.crawl.resolver:
        return config.crawl.resolver
    try:
        lines = RESOLV_CONF.read_text("utf-8", "replace").splitlines()
    except OSError:
        return ()
    words = [line.split() for line in lines]
    servers = [word[1].split("%")[0] for word in words if len(word) > 1 and word[0] == "nameserver"]
    return tuple(f"[{server}]:53" if ":" in server else f"{server}:53" for server in servers)


def seed_hosts(config: Config) -> list[str]:
    """Names (no addresses) of the seeds' hosts, in order."""
    urls = [canonical_url(url) for url in seed_lines(config)[0]]
    return list(dict.fromkeys(host for url in urls if url is not None and not _is_address(host := host_of(url))))


def resolvers(config: Config, *, wanted: bool = True) -> Iterator[Finding]:
    """Ask every name server. `wanted` False: only say what is surely wrong (for `check`)."""
    servers, hosts = name_servers(config), seed_hosts(config)
    if not hosts and not config.crawl.resolver:
        if wanted:
            yield ok("dns", "no seed has a name to look up")
        return
    if not servers:
        yield fault("dns", "no name server is configured", f"set crawl.resolver, or mend {RESOLV_CONF}", "crawl.resolver")
        return
    for server in servers:
        began = time.perf_counter()
        answers = asyncio.run(_ask(server, hosts[:NAMES_ASKED] or ["localhost"]))
        took_ms = (time.perf_counter() - began) * 1000
        dead = [host for host, answer in answers.items() if answer.exists is None]
        if len(dead) == len(answers):
            why = next(iter(answers.values())).detail
            yield fault(
                "dns", f"{server}: {why}", "a crawl cannot do without: set crawl.resolver to one that answers", "crawl.resolver"
            )
            continue
        missing = [host for host, answer in answers.items() if answer.exists is False]
        if missing:
            yield warn("dns", f"{server} knows no {', '.join(missing)}", "look at the seeds", "crawl.seeds")
        elif wanted:
            yield ok("dns", f"{server} answers for {len(answers)} names in {took_ms:.0f} ms")
    if wanted and not any(server.startswith(("127.", "[::1]")) for server in servers):
        hint = "for more than some thousand hosts run a caching resolver on this machine (unbound), and name it in crawl.resolver"
        yield warn("dns", "no name server of this machine is used", hint, "crawl.resolver")


def services(config: Config) -> Iterator[Finding]:
    """PostgreSQL and S3, where the configuration names them: is anybody listening, and does the database let us in."""
    if config.store.frontier != "sqlite" and not wrong_frontier(config.store.frontier):
        from corpus.app.doctor_database import database

        named = urlsplit(config.store.frontier).hostname is not None and "," not in config.store.frontier
        heard = _reach("postgresql", config.store.frontier, "store.frontier") if named else None
        yield heard if heard is not None and heard.state == "fault" else database(config)
    store = config.store
    if store.s3_endpoint is not None or config.in_bucket:
        ours = f"https://s3.{store.s3_region or 'us-east-1'}.amazonaws.com"
        heard = _reach("s3", store.s3_endpoint or ours, "store.root" if store.s3_endpoint is None else "store.s3_endpoint")
        yield heard if heard.state == "fault" or not config.in_bucket else _bucket(config) or heard


def _bucket(config: Config) -> Finding | None:
    """Whether the bucket is there and lets us read in it, which is all that can be known without writing; None when it does."""
    from corpus.store.s3_objects import S3Objects
    from corpus.store.s3_place import S3Place
    from corpus.store.s3_retry import Patience

    try:
        place = S3Place.parse(config.store.root, config.store.s3_endpoint, config.store.s3_region)
        S3Objects(place, patience=Patience(CONNECT_S)).list("corpus.json")
    except CorpusError as error:
        return fault("s3", f"{error.where or config.store.root}: {error.what}", error.hint, "store.root")
    return None


def hub_token(config: Config) -> Iterator[Finding]:
    """Whether there is a token, where a repository to publish to is named. Nobody is asked whether it is valid."""
    if config.publish.repo is None:
        return
    from huggingface_hub import get_token

    if get_token() is None:
        hint = "set HF_TOKEN, or log in with: hf auth login"
        yield fault("hub", f"no token to publish {config.publish.repo} with", hint, "publish.repo")
    else:
        yield ok("hub", f"a token is there for {config.publish.repo}")


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True


async def _ask(server: str, hosts: list[str]) -> dict[str, Answer]:
    client = NameServers([server], TRY_S)
    answers = await asyncio.gather(*(client.ask(host) for host in hosts))
    return dict(zip(hosts, answers, strict=True))


def _reach(name: str, url: str, key: str) -> Finding:
    parts = urlsplit(url)
    host, port = parts.hostname or "localhost", parts.port or _PORTS.get(parts.scheme, 443)
    began = time.perf_counter()
    try:
        socket.create_connection((host, port), CONNECT_S).close()
    except OSError as error:
        return fault(name, f"{host}:{port} cannot be reached: {error.strerror or error}", f"start it, or mend {key}", key)
    return ok(name, f"{host}:{port} accepts connections ({(time.perf_counter() - began) * 1000:.0f} ms)")

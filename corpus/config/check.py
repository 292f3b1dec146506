"""What a valid tree may still get wrong: contradictions, missing identity, impolite pace. All found at once.

Pure but for reading the files the configuration names. Nothing is fetched and nothing is written.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from corpus.config import sense
from corpus.config.load import ConfigError, Problem, load_config
from corpus.config.tree import Config
from corpus.errors import CorpusError
from corpus.store.settings import EngineSettings, StoreSettings
from corpus.url.canonical import canonical_url
from corpus.url.partition import PARTITION_FILES
from corpus.url.scope import UrlScope

if TYPE_CHECKING:
    from corpus.filter.policy import Policy
    from corpus.filter.policy_file import Known

_RAY_ADDRESS = re.compile(r"auto|\[?[A-Za-z0-9._:-]+\]?:[0-9]{1,5}")
_REPO = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}/[A-Za-z0-9][A-Za-z0-9._-]{0,95}")


def problems(config: Config, *, fetching: bool, deep: bool = False) -> list[Problem]:
    """Every mistake beyond the types. `fetching`: the verb will contact hosts, so seeds and contact are needed.

    `deep`: read lists, models and benchmark files whole, however large, in place of only looking for them.
    """
    first: list[Problem] = []
    found: list[tuple[str, str, str]] = []
    if fetching:
        first = [*(located(config, *fault) for fault in _identity(config)), *_seeds(config)]
        given = seed_lines(config)[0]
        found += sense.scope(config) + sense.pace(config, given) + sense.private_seeds(config, given)
    found += (
        sense.too_small(config)
        + _networks(config)
        + _filters(config, deep)
        + _dedup(config)
        + _recrawl(config)
        + _files(config)
        + _publish(config)
        + _elsewhere(config)
    )
    return first + [located(config, key, message, hint) for key, message, hint in found]


def load_checked(path: str, overrides: Sequence[str], *, fetching: bool, deep: bool = False) -> Config:
    """The configuration, or ConfigError with every problem at once: wrong values and contradictions between right ones."""
    try:
        config = load_config(path, overrides=overrides)
    except ConfigError as error:
        more = problems(error.rest, fetching=fetching, deep=deep) if error.rest is not None else []
        raise ConfigError([*error.problems, *(p for p in more if p.key not in error.left_out)], error.rest) from None
    return require(config, fetching=fetching, deep=deep)


def require(config: Config, *, fetching: bool, deep: bool = False) -> Config:
    """The same configuration, or ConfigError with every problem."""
    found = problems(config, fetching=fetching, deep=deep)
    if found:
        raise ConfigError(found, config)
    return config


def located(config: Config, key: str, message: str, hint: str) -> Problem:
    """A problem, with the line that its key stands on."""
    origin = config.origins.get(key, "")
    file, _, line = origin.rpartition(":")
    if line.isdigit():
        return Problem(file, int(line), key, message, hint)
    fallback = next((o.rpartition(":")[0] for o in config.origins.values() if ":" in o), "corpus.toml")
    return Problem(origin or fallback, 0, key, message, hint)


def _identity(config: Config) -> list[tuple[str, str, str]]:
    contact, agent = config.crawl.contact.strip(), config.crawl.user_agent
    found = []
    if not contact:
        found.append(("crawl.contact", "required", "a page about your crawl or a mailbox: site owners must be able to reach you"))
    elif not (urlsplit(contact).scheme in ("http", "https") or ("@" in contact and " " not in contact)):
        found.append(
            ("crawl.contact", "neither a web page nor a mailbox", 'write "https://example.org/bot" or "bot@example.org"')
        )
    if any(ch in contact + agent for ch in "\r\n\0"):
        found.append(("crawl.contact", "has a line break in it", "it is sent in a header"))
    if agent and config.crawl.robots_token.lower() not in agent.lower():
        hint = f"put {config.crawl.robots_token!r} into crawl.user_agent, or change crawl.robots_token"
        found.append(("crawl.user_agent", "does not contain the robots token site owners would look for", hint))
    return found


def seed_lines(config: Config) -> tuple[list[str], list[Problem]]:
    """Seed URLs as given (files read), and what is wrong with them, each where it stands."""
    urls: list[str] = []
    found: list[Problem] = []
    for seed in config.crawl.seeds:
        if "://" in seed:
            urls.append(seed)
            if canonical_url(seed) is None:
                found.append(located(config, "crawl.seeds", _no_url(seed), ""))
            continue
        path = config.base / seed
        try:
            lines = path.read_text("utf-8-sig").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            hint = "write URLs with their scheme, or mend the path"
            found.append(located(config, "crawl.seeds", f"seed file {path} cannot be read: {error}", hint))
            continue
        given = [
            (number, line.strip()) for number, line in enumerate(lines, 1) if line.strip() and not line.lstrip().startswith("#")
        ]
        urls += [url for _, url in given]
        found += [Problem(str(path), number, "crawl.seeds", _no_url(url)) for number, url in given if canonical_url(url) is None]
    return urls, found


def _no_url(text: str) -> str:
    return f"not an http(s) URL: {text[:200]!r}"


def _seeds(config: Config) -> list[Problem]:
    urls, found = seed_lines(config)
    if not urls and not found:
        hint = "a crawl starts somewhere: URLs, or files with one URL a line"
        found.append(located(config, "crawl.seeds", "required", hint))
    return found


def _networks(config: Config) -> list[tuple[str, str, str]]:
    found = []
    for cidr in config.crawl.allow_private:
        try:
            ipaddress.ip_network(cidr)
        except ValueError as error:
            found.append(("crawl.allow_private", f"not a network: {error}", 'write "127.0.0.0/8"'))
    for server in config.crawl.resolver:
        host, _, port = server.rpartition(":")
        try:
            ipaddress.ip_address(host.strip("[]"))
            valid = 0 < int(port) < 65536
        except ValueError:
            valid = False
        if not valid:
            found.append(("crawl.resolver", f"not IP:PORT: {server!r}", 'write "127.0.0.1:53"'))
    return found


def _filters(config: Config, deep: bool) -> list[tuple[str, str, str]]:
    from corpus.filter.languages import normalise_language
    from corpus.filter.sources import Sources

    found = []
    for language in config.corpus.languages:
        try:
            normalise_language(language)
        except ValueError as error:
            found.append(("corpus.languages", str(error), ""))
    for fault in Sources.of(config.filter, config.base).faults(deep=deep):
        key, _, where = fault.where.partition(": ")
        known = key if key.startswith("filter.") else "filter"
        found.append((known, f"{where or fault.where}: {fault.what}".removeprefix(": "), fault.hint))
    if any(key == "filter.rules" for key, _, _ in found):
        return found  # a policy may speak of what they would measure
    return found + _policy(config)


def _policy(config: Config) -> list[tuple[str, str, str]]:
    """Every mistake of the policy file, and one that would decide nothing."""
    from corpus.filter.policy_file import policy_faults

    faults = policy_faults(policy_name(config), _known_signals(config))
    if faults:
        own = "filter.policy"
        return [(own, str(fault.what) if fault.where == own else f"{fault.where}: {fault.what}", fault.hint) for fault in faults]
    policy = configured_policy(config)
    if not policy.rules and not policy.cut:
        said = f"{policy_name(config)}: no rule and nothing to cut in it, so everything would be kept"
        return [
            ("filter.policy", said, 'write rules, or inherit = "balanced"; "permissive" is the shipped policy that keeps most')
        ]
    return []


def configured_policy(config: Config, other: str | None = None) -> Policy:
    """The policy (or another by name or file), with its signals checked against the sources that are configured. Raises UsageError."""
    from corpus.filter.policy_file import read_policy

    return read_policy(policy_name(config, other), _known_signals(config))


def _known_signals(config: Config) -> Known:
    from corpus.filter.policy_file import Known
    from corpus.filter.signals_reduced import HOST_LINES_KEY
    from corpus.filter.sources import Sources

    sources = Sources.of(config.filter, config.base)
    return Known(sources.own, sources.keys | ({HOST_LINES_KEY} if config.filter.host_line_pages is not None else frozenset()))


def policy_name(config: Config, other: str | None = None) -> str:
    """The policy as `load_policy` takes it: a shipped name, or a file relative to the configuration."""
    name = other or config.filter.policy
    return str(config.base / name) if "/" in name or name.endswith(".toml") else name


def _dedup(config: Config) -> list[tuple[str, str, str]]:
    """The signature scheme a32-1 has 5-word shingles and 112 values; other shapes would need other signatures."""
    dedup, found = config.dedup, []
    if dedup.ngram != 5:
        found.append(("dedup.ngram", "signatures of scheme a32-1 are made of 5-word shingles", "leave it at 5"))
    if dedup.bands * dedup.rows > 112:
        found.append(
            (
                "dedup.bands",
                f"{dedup.bands} bands of {dedup.rows} rows need more than the 112 values of a signature",
                "lower one of them",
            )
        )
    if dedup.keep == "best" and config.filter.quality_model is None:
        hint = "set filter.quality_model (corpus quality train makes one), or keep longest, newest or oldest"
        found.append(("dedup.keep", '"best" is by the quality score, and no model gives one', hint))
    return found


def _recrawl(config: Config) -> list[tuple[str, str, str]]:
    recrawl = config.recrawl
    if recrawl.min_interval <= recrawl.max_interval:
        return []
    words = f"{recrawl.min_interval:g}s is longer than recrawl.max_interval ({recrawl.max_interval:g}s)"
    return [("recrawl.min_interval", words, "lower one of them")]


def wrong_frontier(value: str) -> tuple[str, str] | None:
    """What is wrong with `store.frontier`, and what to write."""
    if value == "sqlite":
        return None
    try:
        parts = urlsplit(value)
        secret = parts.password is not None or "password=" in parts.query
    except ValueError:
        return "not a DSN", 'write "postgresql://user@host:5432/database"'
    if parts.scheme not in ("postgresql", "postgres"):
        return "neither sqlite nor the DSN of a PostgreSQL server", 'write "sqlite" or "postgresql://user@host:5432/database"'
    if secret:
        return "a password in a configuration ends in logs and backups", "take it out; set PGPASSWORD, or write it into ~/.pgpass"
    if not value.startswith(("postgresql://", "postgres://")):
        return "a DSN has two slashes before the server's name", 'write "postgresql://user@host:5432/database"'
    if find_spec("psycopg") is None:
        return "PostgreSQL needs another package", "pip install 'corpus[fleet]'"
    return _wrong_dsn(value)


def wrong_spread(store: StoreSettings) -> tuple[str, str, str] | None:
    """What is wrong with the number of partition files: (key, message, hint)."""
    if store.frontier == "sqlite" and store.partition_files != PARTITION_FILES:
        told = f"a frontier in SQLite has {PARTITION_FILES} partition files"
        return "store.partition_files", told, "leave it out; a fleet has its frontier on PostgreSQL (store.frontier)"
    return None


def _wrong_dsn(value: str) -> tuple[str, str] | None:
    """What PostgreSQL's own reader finds wrong with a DSN, and a database that is left to chance."""
    from psycopg import ProgrammingError
    from psycopg.conninfo import conninfo_to_dict

    try:
        parts = conninfo_to_dict(value)
    except ProgrammingError as error:
        return f"not a DSN: {str(error).strip()}", 'write "postgresql://user@host:5432/database"'
    ports = str(parts.get("port") or "").split(",")
    if not all(port == "" or (port.isdecimal() and 0 < int(port) < 65536) for port in ports):
        return f"not a port: {parts['port']!r}", 'write "postgresql://user@host:5432/database"'
    if not parts.get("dbname") and not parts.get("service"):
        return "names no database", "a corpus has a database of its own: postgresql://user@host:5432/database"
    return None


def wrong_engine(engine: EngineSettings) -> tuple[str, str, str] | None:
    """What is wrong with how stages are to be run: (key, message, hint)."""
    if engine.kind != "ray":
        return ("engine.address", "only Ray has an address", 'set engine.kind = "ray"') if engine.address is not None else None
    if find_spec("ray") is None:
        return "engine.kind", "Ray needs another package", "pip install 'corpus[ray]'"
    if engine.address is not None and not _RAY_ADDRESS.fullmatch(engine.address):
        hint = (
            'write "host:port" of its head, or "auto", and call from one of its nodes; leave it out for a cluster on this machine'
        )
        return "engine.address", f"not the address of a Ray cluster: {engine.address[:200]!r}", hint
    return None


def _elsewhere(config: Config) -> list[tuple[str, str, str]]:
    """What only a fleet has; `open_project` refuses the same, for those who never check."""
    found = []
    found += _bucket(config)
    if wrong := wrong_frontier(config.store.frontier):
        found.append(("store.frontier", *wrong))
    found += [bad for bad in (wrong_spread(config.store), wrong_engine(config.engine)) if bad]
    proxy = config.crawl.proxy
    if proxy is not None and (urlsplit(proxy).scheme not in ("http", "https") or not urlsplit(proxy).hostname):
        found.append(("crawl.proxy", f"not a proxy's URL: {proxy[:200]!r}", 'write "http://proxy.example:3128"'))
    tokenizer = config.export.tokenizer
    if tokenizer not in ("gpt2", "none") and not (config.base / tokenizer).is_file():
        found.append(("export.tokenizer", f"no such file: {config.base / tokenizer}", '"gpt2", "none" or a file of BPE merges'))
    try:
        scope = config.crawl.scope
        UrlScope(domains=scope.domains, hosts=scope.hosts, prefixes=scope.prefixes, exclude=scope.exclude, any=scope.any)
    except CorpusError as error:
        found.append(("crawl.scope", str(error.what), error.hint))
    return found


def _bucket(config: Config) -> list[tuple[str, str, str]]:
    """What can be known of a root on S3 without asking it."""
    from corpus.store.s3_place import INSTALL, S3Place, has_boto3

    store, found = config.store, []
    if not config.in_bucket:
        given = {"store.s3_endpoint": store.s3_endpoint, "store.s3_region": store.s3_region}
        return [
            (key, "means nothing for a folder", "set store.root to s3://bucket/prefix, or leave it out")
            for key, value in given.items()
            if value
        ]
    try:
        S3Place.parse(store.root)
    except CorpusError as error:
        found.append(("store.root", str(error.what), error.hint))
    if store.s3_endpoint is not None and (
        urlsplit(store.s3_endpoint).scheme not in ("http", "https") or not urlsplit(store.s3_endpoint).hostname
    ):
        found.append(("store.s3_endpoint", f"not a URL: {store.s3_endpoint[:200]!r}", 'write "https://s3.example.org"'))
    if not has_boto3():
        found.append(("store.root", "S3 needs the package boto3", INSTALL))
    return found


def _publish(config: Config) -> list[tuple[str, str, str]]:
    found, repo = [], config.publish.repo
    if repo is not None and not _REPO.fullmatch(repo):
        found.append(("publish.repo", f"not a repository of the hub: {repo[:200]!r}", 'write "owner/name"'))
    if config.publish.card is not None:
        from corpus.export.words import read_words

        try:
            read_words(config.base / config.publish.card)
        except CorpusError as error:
            found.append(("publish.card", f"{error.where}: {error.what}", error.hint))
    return found


def _files(config: Config) -> list[tuple[str, str, str]]:
    named = {
        "crawl.ca_file": config.crawl.ca_file,
        "optout.domains_file": config.optout.domains_file,
        "extract.language_model": config.extract.language_model,
    }
    return [
        (key, f"no such file: {config.base / value}", "")
        for key, value in named.items()
        if value is not None and not Path(config.base / value).is_file()
    ]

"""The PostgreSQL server that `store.frontier` names, as a crawl would meet it: are we let in, is it new enough, may we make tables,
and is what lies there ours to use. Reads only; loaded only where a server is configured."""

from __future__ import annotations

from corpus.app.findings import Finding, fault, ok
from corpus.config.tree import Config
from corpus.errors import StoreError

KEY = "store.frontier"
SPREAD = "store.partition_files"
BESIDE = 8
"""Connections of a worker beside those of its partition files: the list of members, inbox, claims, near copies, a clock, and some room."""
NAME = "postgresql"


def database(config: Config) -> Finding:
    """One line: the first thing that would stop a crawl, or that nothing would."""
    from corpus.store.frontier_pg_look import NEWEST_SCHEMAS, OLDEST, look

    try:
        seen = look(config.store.frontier)
    except StoreError as error:
        return fault(NAME, f"{error.where}: {error.what}", error.hint, KEY)
    if seen.version < OLDEST:
        return fault(NAME, f"version {seen.version} is too old", f"use PostgreSQL {OLDEST} or newer", KEY)
    if not seen.owns:
        hint = f"log in as {seen.owner}, or give the corpus a database of its own"
        return fault(NAME, f"the tables belong to {seen.owner}, and {seen.role} may not use them", hint, KEY)
    if not seen.may_create:
        hint = f"GRANT CREATE ON DATABASE … TO {seen.role}, or make {seen.role} the database's owner"
        return fault(NAME, f"{seen.role} may not make tables in this database", hint, KEY)
    if seen.corpus and seen.corpus != config.corpus.name:
        hint = "give every corpus a database of its own"
        return fault(NAME, f"this database holds the frontier of the corpus {seen.corpus!r}", hint, KEY)
    spread = config.store.partition_files
    if seen.spread not in (None, spread):
        hint = f"set it to {seen.spread}, or begin with an empty database"
        return fault(NAME, f"the frontier here is spread over {seen.spread} partition files, not {spread}", hint, SPREAD)
    if seen.connections < spread + BESIDE:
        hint = f"raise max_connections there: {spread} for the files and {BESIDE} for each worker"
        return fault(NAME, f"the server takes {seen.connections} connections, and every partition file needs one", hint, SPREAD)
    for found, known, what in zip(seen.schemas, NEWEST_SCHEMAS, ("frontier", "fleet"), strict=True):
        if found > known:
            said = f"its {what} tables were written by a newer version (schema {found}, this one knows {known})"
            return fault(NAME, said, "update corpus, or use another database", KEY)
    return ok(NAME, f"version {seen.version}, {seen.role} may make tables; {_holds(seen.schemas, NEWEST_SCHEMAS)}")


def _holds(found: tuple[int, int], known: tuple[int, int]) -> str:
    if not found[0]:
        return "empty"
    old = " (brought up to this version by the next crawl)" if found[0] < known[0] or 0 < found[1] < known[1] else ""
    fleet = f", fleet schema {found[1]}" if found[1] else ""
    return f"frontier schema {found[0]}{fleet}{old}"

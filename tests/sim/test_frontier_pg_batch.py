"""What a commit costs a PostgreSQL server: few statements whatever its size, rows by their keys, no index written in vain."""

from __future__ import annotations

from typing import Any

import pytest

from corpus.crawl.ports import Ack, Due, HostRow, Judged, Settled
from corpus.model import CaptureRef, Sighting, UrlState
from tests.postgres_kit import Postgres

psycopg = pytest.importorskip("psycopg")
pytestmark = pytest.mark.needs("postgres")

from corpus.store import frontier_pg_batch  # noqa: E402
from corpus.store.frontier_pg_many import array, as_many  # noqa: E402
from corpus.store.frontier_postgres import PostgresFrontier  # noqa: E402


def _page(host: int, n: int, links: int = 5) -> list[Ack]:
    """A page of a host, settled, with new links; the page itself must be known."""
    name = f"h{host}.test"
    new = [
        Judged(Sighting(url, url, 2, via=f"https://{name}/{n}"), name, name)
        for url in (f"https://{name}/{n}/{k}" for k in range(links))
    ]
    ref = CaptureRef("warc/s00-000001-000001.warc.gz", n, 900)
    page = Settled(
        f"https://{name}/{n}", UrlState.FETCHED, attempts=1, http_status=200, fetched_at=1.8e9, capture=ref, segment_end=n + 1
    )
    return [Ack(HostRow(name, name, state="active", due=Due(1.8e9, 2.0), pages=n), (page,), (), tuple(new))]


def _seeded(dsn: str, hosts: int, pages: int) -> PostgresFrontier:
    store = PostgresFrontier(dsn, 0)
    store.claim("test")
    urls = [(f"h{host}.test", f"https://h{host}.test/{n}") for host in range(hosts) for n in range(pages)]
    store.commit([Ack(own=tuple(Judged(Sighting(url, url, 1), name, name) for name, url in urls))])
    return store


def test_a_commit_is_as_many_statements_whatever_its_size(postgres_server: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    """One page, and forty of forty hosts: the same statements, in three breaths at most; and all rows are there afterwards."""
    store = _seeded(postgres_server.dsn(prepared=True), 41, 2)
    store.commit(_page(40, 0))  # words that all pages share get their numbers
    said: list[str] = []
    execute = psycopg.Connection.execute

    def heard(self: Any, query: Any, *args: Any, **kwargs: Any) -> Any:
        said.append(str(query)[:60])
        return execute(self, query, *args, **kwargs)

    monkeypatch.setattr(psycopg.Connection, "execute", heard)
    store.commit(_page(40, 1))
    one, said[:] = list(said), []
    store.commit([ack for host in range(40) for ack in _page(host, 0)])
    assert said == one, "a statement was repeated"
    assert len(one) <= 16, one
    monkeypatch.undo()
    assert store.tally().by_state == {("fetched", ""): 42, ("queued", ""): 40 + 42 * 5}
    assert {row.host: row.queued for row in store.hosts()} == {f"h{host}.test": 6 if host < 40 else 10 for host in range(41)}
    head = store.heads("h7.test", 9)[-1]
    assert (head.via, head.depth) == ("https://h7.test/0", 2)
    store.close(clean=True)


def test_a_page_writes_no_index_of_its_host_anew(postgres_server: Postgres) -> None:
    """A host's row is changed in place (HOT): no index of it speaks of what a page changes."""
    store = _seeded(postgres_server.dsn(prepared=True), 3, 9)
    for n in range(9):
        store.commit([ack for host in range(3) for ack in _page(host, n)])
    raw = store._pg.raw
    raw.execute("SELECT pg_stat_force_next_flush()")
    raw.execute("SELECT 1")
    sql = "SELECT relname, n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE schemaname = 'p00' AND relname IN ('host', 'domain')"
    found = {name: (changed, hot) for name, changed, hot in raw.execute(sql).fetchall()}
    # the first page makes a new host an active one, which the index of retired hosts has to look at
    assert found["host"][0] >= 27
    assert found["host"][1] >= found["host"][0] - 3
    assert found["domain"] == (27, 27)
    store.close(clean=True)


def test_a_line_looks_at_the_visits_of_its_own_urls_only(postgres_server: Postgres) -> None:
    """A host with many visits: its next URL costs a look by the whole key, not a walk over them all."""
    store = _seeded(postgres_server.dsn(prepared=True), 1, 40)
    for n in range(39):
        store.commit(_page(0, n, links=0))
    raw = store._pg.raw
    raw.execute("ANALYZE url")
    raw.execute("ANALYZE visit")
    number = store._names.host("h0.test")
    asked = (
        frontier_pg_batch._HEADS.replace("%s::int", str(number)).replace("%s::smallint", "0::smallint").replace("%s::bigint", "1")
    )
    plan = "\n".join(line for (line,) in raw.execute("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) " + asked).fetchall())
    assert "Index Scan using visit_pkey" in plan, plan
    assert "Rows Removed" not in plan, plan
    store.close(clean=True)


def test_statements_are_turned_whole() -> None:
    """Insertions, changes and deletions with their conditions; what is not understood is not turned."""
    many = as_many("UPDATE url SET found=?, via=? WHERE host=? AND uid=?")
    assert many is not None
    assert many.sql == (
        "UPDATE url SET found = v.c1, via = v.c2 FROM unnest(%s::text[], %s::bigint[], %s::integer[], %s::bytea[]) AS v(c1, c2, c3, c4)"
        " WHERE url.host = v.c3 AND url.uid = v.c4"
    )
    assert many.takes([("a", 1, 2, b"x"), ("a", 1, 2, b"y")])
    assert not many.takes([("a", 1, 2, b"x"), ("b", 2, 2, b"x")]), "of two changes of a row the server would make one"
    gone = as_many("DELETE FROM outbox WHERE dst = ? AND seq <= ?")
    assert gone is not None
    assert gone.sql.endswith("WHERE outbox.dst = v.c1 AND outbox.seq <= v.c2")
    assert as_many("UPDATE version SET last_at = max(last_at, ?) WHERE host=? AND uid=?") is None
    put = as_many("INSERT OR REPLACE INTO mark VALUES (?, ?)")
    assert put is not None
    assert put.sql.endswith("ON CONFLICT (src) DO UPDATE SET seq = excluded.seq")
    assert not put.takes([(1, 2), (1, 3)])


def test_any_text_travels_in_an_array(postgres_server: Postgres) -> None:
    """Quotes, backslashes, NULL, braces, NULs, lone surrogates, an empty text: each comes back as it was."""
    texts = ["", "NULL", 'a"b\\c', "{x,y}", "\0", "\ud800", "\x01[1]", "ü, 日", None, "line\nline"]
    store = PostgresFrontier(postgres_server.dsn(prepared=True), 0)
    rows = store._pg.ask("SELECT t FROM unnest(%s::text[]) AS t", (array("text", texts),)).fetchall()
    assert [text for (text,) in rows] == texts
    (numbers,) = store._pg.raw.execute(
        "SELECT %s::double precision[]", (array("double precision", [1.5, None, True, 2**53]),)
    ).fetchone()
    assert numbers == [1.5, None, 1.0, 2.0**53]
    store.close(clean=False)

"""The server's session of a partition file's owner: noted with its claim, so that an heir can end it.

A machine that is gone leaves its last transaction open, and with it the epoch's row locked, for as long as its connection
looks alive from the server: where the network swallowed it in the middle of a pipeline, no limit for idle transactions counts.
Ending the session loses nothing: what was committed stays, what was not was never acknowledged, and the fence waits all the same.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, cast

import psycopg

_NOTE = (
    "INSERT INTO meta (name, value, note) SELECT 'session', pid, extract(epoch FROM backend_start)::text FROM pg_stat_activity"
    " WHERE pid = pg_backend_pid() ON CONFLICT (name) DO UPDATE SET value = excluded.value, note = excluded.note"
)
_END = (
    "SELECT pg_terminate_backend(s.pid) FROM meta m JOIN pg_stat_activity s ON s.pid = m.value"
    " AND extract(epoch FROM s.backend_start)::text = m.note WHERE m.name = 'session' AND s.pid <> pg_backend_pid()"
)
"""The number of a process is given again; its start with it is not."""


def note_session(con: psycopg.Connection[Any]) -> None:
    """Whoever claims says which session is the owner's, in the claim's own transaction."""
    con.execute(cast(Any, _NOTE))


def end_session(con: psycopg.Connection[Any]) -> None:
    """End the last owner's session, whose lease is known to be over. Another role's is not ours to end: then it is waited for."""
    with suppress(psycopg.errors.InsufficientPrivilege):
        con.execute(cast(Any, _END))

"""What others build on, frozen: states, reasons, columns, families and configuration keys stand as tables in `frozen/`.

A difference is not a mistake by itself, but it is a deliberate act: change the table in the same commit, and say why. To
write the tables anew: `python -m tests.unit.test_house_frozen`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

FROZEN = Path(__file__).parent / "frozen"


def url_states() -> dict[str, Any]:
    """State → event → next state, and which states a frontier row may hold."""
    from corpus.crawl.states import STORED, TRANSITIONS

    table = {state.value: {event.value: to.value for event, to in row.items()} for state, row in TRANSITIONS.items()}
    return {"transitions": table, "stored": sorted(state.value for state in STORED)}


def reason_codes() -> dict[str, Any]:
    """Code → step and verdict. Sentences may be reworded; a code never changes its meaning."""
    from corpus.reasons import REASONS

    return {code: {"step": reason.step, "verdict": reason.verdict} for code, reason in REASONS.items()}


def outcomes() -> dict[str, Any]:
    """The closed sets of the nouns."""
    from corpus.model import FUNNEL_STAGES, SCHEMA_VERSION, Access, Failure, Gate, Kind, Outcome, UrlState, Use

    sets = (Access, Use, Gate, UrlState, Kind, Failure, Outcome)
    return {kind.__name__: sorted(member.value for member in kind) for kind in sets} | {
        "funnel": list(FUNNEL_STAGES),
        "schema_version": SCHEMA_VERSION,
    }


def release_columns() -> dict[str, Any]:
    """Release columns in order; the fields of `signals` have a table of their own."""
    from corpus.export.schema import release_schema

    return _columns(release_schema([]))


def signals() -> dict[str, Any]:
    """Names and types of the signals of this schema version, in order."""
    from corpus.filter.schema import SIGNALS_SCHEMA

    return _columns(SIGNALS_SCHEMA)


def families() -> dict[str, Any]:
    """Columns of the other families, the stage's version and the order of rows."""
    from corpus.filter.schema import SCHEMAS, SORT_ORDER, STAGE_VERSION

    named = {name: _columns(schema) for name, schema in SCHEMAS.items() if name != "signals"}
    return {**named, "order": list(SORT_ORDER), "stage_version": STAGE_VERSION}


def config_tree() -> dict[str, Any]:
    """Every key of the configuration with its default."""
    from corpus.config.tree import Config, CorpusSettings, leaves

    return leaves(Config(corpus=CorpusSettings(name="x")).model_dump(mode="json"))


def verify_kinds() -> dict[str, Any]:
    """Kinds of faults that `verify --json` speaks of."""
    from corpus.app.verify_faults import Kind

    return {"kinds": sorted(kind.value for kind in Kind)}


def _columns(schema: pa.Schema) -> dict[str, str]:
    return {field.name: f"{field.type}{'' if field.nullable else ' not null'}" for field in schema}


TABLES: dict[str, Callable[[], dict[str, Any]]] = {
    table.__name__: table
    for table in (url_states, reason_codes, outcomes, release_columns, signals, families, config_tree, verify_kinds)
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(TABLES))
def test_the_table_is_as_it_was_frozen(name: str) -> None:
    """Keys, their order where it matters, types and defaults are those of the committed table."""
    frozen = json.loads((FROZEN / f"{name}.json").read_text("utf-8"))
    now = json.loads(json.dumps(TABLES[name]()))
    assert now == frozen, f"{name} has changed: if that is meant, write frozen/{name}.json anew and say why in the commit"
    if name in ("release_columns", "signals"):
        assert list(now) == list(frozen), "the order of columns is part of the schema"


def test_there_is_a_table_for_each_and_none_more() -> None:
    """The folder holds exactly these tables."""
    assert {path.stem for path in FROZEN.glob("*.json")} == set(TABLES)


if __name__ == "__main__":
    for table_name, make in TABLES.items():
        (FROZEN / f"{table_name}.json").write_text(json.dumps(make(), indent=1, ensure_ascii=False) + "\n", "utf-8")

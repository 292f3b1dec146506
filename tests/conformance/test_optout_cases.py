"""The 190 consent cases, through the same functions that a crawl and an export use."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from corpus.errors import UsageError
from corpus.optout.cases import evaluate, run_cases

CASES = Path(__file__).with_name("optout_cases.json")


def _cases() -> list[dict[str, Any]]:
    cases: list[dict[str, Any]] = json.loads(CASES.read_text(encoding="utf-8"))
    return cases


def test_every_case_is_met() -> None:
    """All 190 cases give what they expect."""
    outcome = run_cases(CASES)
    assert outcome["total"] == 190
    assert outcome["failed"] == []


def _other(value: Any) -> Any:
    match value:
        case bool():
            return not value
        case "no":
            return "yes"
        case "yes" | "unknown" | "defer" | "hold" | "skip" | "fetch":
            return "no"
        case None:
            return "something"
        case _:
            return None


def test_every_expectation_can_fail() -> None:
    """Turning any single expected value round makes its case fail: no expectation is met by accident."""
    silent = []
    for case in _cases():
        for key, value in case["expect"].items():
            turned = copy.deepcopy(case)
            turned["expect"] = {key: _other(value)}
            if not run_cases([turned])["failed"]:
                silent.append((case["id"], key))
    assert silent == []


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "robots-of-mars"},
        {"input": {"robots_txt": "", "robots_of_mars": ""}},
        {"expect": {"colour": "blue"}},
        {"input": {"t0": {}, "t2": {}}, "kind": "temporal"},
        {"input": {"cluster": [], "shape": 1}, "kind": "dedup"},
        {"input": 7},
    ],
)
def test_what_is_not_understood_fails(change: dict[str, Any]) -> None:
    """An unknown kind, input or expected key fails the case instead of passing it."""
    case = {"id": "X", "kind": "robots", "input": {"robots_txt": ""}, "url": "https://ex.com/", "expect": {"fetch": True}}
    assert not run_cases([case])["failed"]
    assert [item["id"] for item in run_cases([case | change])["failed"]] == ["X"]
    assert run_cases([case, "not a case"])["failed"][0]["id"] == "#2"


def test_a_file_that_is_no_list_is_refused(tmp_path: Path) -> None:
    """A missing file, broken JSON and a lone object are usage errors, not empty successes."""
    (tmp_path / "broken").write_text("[", encoding="utf-8")
    (tmp_path / "object").write_text("{}", encoding="utf-8")
    for name in ("missing", "broken", "object"):
        with pytest.raises(UsageError):
            run_cases(tmp_path / name)


def test_more_agents_only_refuse_more() -> None:
    """A longer agent table never turns a no into anything else."""
    for case in _cases():
        before = evaluate(case)
        after = evaluate(
            case | {"user_agents": [*case.get("user_agents", ["CorpusBot"]), "GPTBot", "CCBot", "Google-Extended", "B"]}
        )
        if before.get("train") == "no":
            assert after["train"] == "no", case["id"]

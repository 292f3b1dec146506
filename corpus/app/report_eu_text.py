"""The training-content summary as Markdown, in the template's order. Whatever came from the web is escaped; a marked line is the
provider's to write."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from corpus.app.report_eu import MARK, EuSummary
from corpus.export.escape import Ours, markdown

_READINGS = {"by_number": "of the number of domains", "by_size": "of the bytes fetched"}


def markdown_lines(summary: EuSummary) -> Iterator[str]:
    """The document line by line, without line ends: the list of domains may be long."""
    told = summary.document
    yield from _head(told)
    yield from _general(told["general"])
    yield from _sources(told["public_datasets"])
    yield from _crawled(told["crawled"])
    yield from _domains(summary)
    yield from _others()
    yield from _optouts(told["optouts"], told["crawled"]["robots_token"])
    yield from (
        "",
        "### 3.2 Removal of illegal content",
        "",
        told["illegal_content"],
        "",
        "### 3.3 Other information",
        "",
        told["other_information"],
    )


def _head(told: dict[str, Any]) -> Iterator[str]:
    release = told["release"]
    yield "# Public summary of training content"
    yield ""
    yield f"{told['template']}. Made from the release {_code(release['name'])}, snapshot {_code(release['identity']['snapshot'])}."
    yield f"Where it says {MARK}, this software cannot know the answer."
    if release["withdrawn"]:
        yield ""
        yield "**This release is withdrawn: summarise the one that replaced it.**"
    yield from (
        "",
        "## 1 General information",
        "",
        "### 1.1 Provider",
        "",
        told["provider"],
        "",
        "### 1.2 Model",
        "",
        told["model"],
    )


def _general(general: dict[str, Any]) -> Iterator[str]:
    tokens = "not counted" if general["tokens"] is None else f"{general['tokens']:,} ({markdown(general['tokenizer'])})"
    yield from ("", "### 1.3 Modalities, size and other characteristics", "")
    yield from _table(
        ("modality", "present", "size", "content"),
        [
            ("text", "yes", general["size"], general["modalities"]["text"]),
            *((name, "no", "none in this release", "") for name in ("image", "audio", "video")),
        ],
    )
    yield from ("", f"- Pages: {general['pages']:,}", f"- Bytes of text: {general['text_bytes']:,}", f"- Tokens: {tokens}")
    yield f"- Latest acquisition: {general['latest_acquisition'] or 'never'}"
    yield f"- Other characteristics: {general['other_characteristics']}"
    yield ""
    yield from _table(("language", "pages"), general["languages"].items())


def _sources(public: dict[str, Any]) -> Iterator[str]:
    yield from ("", "## 2 Data sources", "", "### 2.1 Publicly available datasets", "")
    if public["taken_in"]:
        yield "Archives made by others that were taken in (their names, owners and links: " + MARK + "):"
        yield ""
        yield from _periods(public["taken_in"])
    else:
        yield "None in this release."
    yield from (
        "",
        f"Datasets used besides this release: {public['others']}",
        "",
        "### 2.2 Data licensed from third parties",
        "",
        MARK,
    )


def _crawled(crawled: dict[str, Any]) -> Iterator[str]:
    yield from ("", "### 2.3 Data crawled and scraped from online sources", "")
    yield f"- Crawlers were used: {'yes' if crawled['used'] else 'no, archives of others only (2.1)'}"
    yield f"- Crawler: {_given(crawled['crawler'])} (robots.txt token {_code(crawled['robots_token'])}), contact {_given(crawled['contact'])}"
    yield f"- Purposes: {crawled['purposes']}"
    yield "- Behaviour:"
    yield from (f"    - {line}" for line in crawled["behaviour"])
    yield f"- Modalities: {', '.join(crawled['modalities'])}"
    yield f"- Collected: {crawled['pages']:,} pages, {crawled['bytes']:,} bytes; {crawled['linked_copies']:,} of the pages are near copies of which no body is kept"
    yield f"- Comments: {crawled['comments']}"
    yield from ("", "Periods of collection:", "")
    yield from _periods(crawled["periods"])
    yield ""
    yield from _table(("content type", "pages"), crawled["content_types"].items())


def _domains(summary: EuSummary) -> Iterator[str]:
    rule = summary.document["domain_rule"]
    chosen = rule["providers"][rule["provider"]]
    cap = f", at most {chosen['cap']:,}" if chosen["cap"] else ""
    who = "a small or medium-sized provider" if rule["provider"] == "sme" else "a provider of any size"
    yield from ("", "#### The most relevant domain names", "")
    yield f"{rule['domains']:,} registered domains (public suffix list {_code(rule['suffix_list'])}), {rule['bytes']:,} bytes fetched."
    yield f"For {who} the template asks for the top {chosen['percent']} % by size of the content scraped{cap}, which can be read in two ways:"
    yield ""
    for reading, words in _READINGS.items():
        found = chosen[reading]
        tied = (
            f"; {found['as_large_but_not_named']:,} more are as large as the last of them"
            if found["as_large_but_not_named"]
            else ""
        )
        capped = f" ({found['uncapped']:,} without the limit)" if found["uncapped"] != found["domains"] else ""
        yield f"- {chosen['percent']} % {words}: the first {found['domains']:,}{capped}{tied}"
    yield ""
    yield (
        f"Listed are {summary.listed:,}, enough for both. Bytes fetched are the stored answers (head and body, as sent) as they lie compressed in the archive; "
        "text kept is what the release holds. Equal sizes stand in order of name."
    )
    yield ""
    head = (
        "rank",
        "domain",
        "pages fetched",
        "bytes fetched",
        "share",
        "cumulative",
        "pages kept",
        "text kept",
        "first fetched",
        "last fetched",
    )
    names = (
        "rank",
        "domain",
        "pages_fetched",
        "bytes_fetched",
        "share",
        "cumulative_share",
        "pages_kept",
        "text_bytes_kept",
        "first_fetched",
        "last_fetched",
    )
    yield from _table(head, (_cells(row, names) for row in summary.table.rows(summary.listed)))


def _others() -> Iterator[str]:
    for number, name in (("2.4", "User data"), ("2.5", "Synthetic data"), ("2.6", "Other sources")):
        yield from ("", f"### {number} {name}", "", MARK)


def _optouts(told: dict[str, Any], token: str) -> Iterator[str]:
    yield from ("", "## 3 Data processing", "", "### 3.1 Respect of reservations of rights", "")
    yield f"Looked up before fetching, in every answer, and again for this release (our token is {_code(token)}):"
    yield ""
    yield from (f"- {line}" for line in told["protocols"])
    yield ""
    yield "Settings: " + ", ".join(
        f"{markdown(name)} = {_code(value)}" for name, value in told["settings"].items() if value is not None
    )
    yield ""
    if not told["recorded_when_asked"]:
        yield "The snapshot of this release does not say what was refused when it was asked for; that column is empty."
        yield ""
    asked = told["recorded_when_asked"]
    rows = [
        (
            Ours(f"`{row['signal']}`"),
            Ours(row["meaning"]),
            "" if row["when_asked"] is None else f"{row['when_asked']:,}",
            f"{row['when_exported']:,}",
        )
        for row in told["signals"]
    ]
    yield from _table(("signal", "meaning", "URLs not fetched", "stored pages left out"), rows)
    yield ""
    use = told["use"]
    yield f"- Pages in the release whose sites permit training: {use['yes']:,}; that say nothing: {use['unknown']:,}; that refuse: {use['no']:,}"
    yield f"- URLs behind a challenge, left alone: {told['challenges']:,}" if asked else "- URLs behind a challenge: not recorded"
    yield f"- Removals (on request, or because a page said no later) that TOMBSTONES.parquet lists: {told['takedowns']:,}"
    yield f"- Policy of the provider: {told['policy_of_the_provider']}"


def _periods(periods: Sequence[dict[str, Any]]) -> Iterator[str]:
    names = ("crawl_id", "from", "to", "pages", "bytes", "domains")
    yield from _table(("crawl", "from", "to", "pages", "bytes", "domains"), (_cells(p, names) for p in periods))


_FOREIGN = frozenset({"domain", "crawl_id"})
"""Cells that hold what others chose; all others are numbers and times of our own."""


def _cells(row: dict[str, Any], names: Sequence[str]) -> tuple[object, ...]:
    return tuple(row[name] if name in _FOREIGN or not isinstance(row[name], str) else Ours(row[name]) for name in names)


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for row in rows:
        cells = (markdown(cell) if isinstance(cell, str) else f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row)
        yield "| " + " | ".join(cells) + " |"


def _given(text: str) -> str:
    return text if text == MARK else markdown(text)


def _code(value: object) -> str:
    """A value of ours in code; anything that could end the code span is taken out."""
    return "`" + "".join(ch for ch in str(value) if ch.isprintable() and ch != "`") + "`"

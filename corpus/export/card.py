"""`README.md` of a release: the dataset card, generated from the run's facts. What only a person can say is marked ✍.

Whatever comes from the web is escaped; numbers come from `summary`, which the shards were checked against.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from corpus.export.card_front import TITLE, front_matter
from corpus.export.decide import Decisions
from corpus.export.domains import share
from corpus.export.escape import Ours, markdown
from corpus.export.ports import ReleaseOptions, ReleasePolicy, SnapshotInputs
from corpus.export.refusals import WARN_ABOVE
from corpus.export.schema import DESCRIPTIONS
from corpus.export.shard import Written
from corpus.export.summary import Counts, DomainRow
from corpus.export.words import said
from corpus.reasons import REASONS

HUMAN = "✍"
TO_DO = f"{HUMAN} TO BE PROVIDED BY PROVIDER"
"""What stands where a person must write; a push is blocked while it does."""
_TOP = 20


@dataclass(frozen=True, slots=True)
class CardFacts:
    """Everything the card speaks of."""

    inputs: SnapshotInputs
    options: ReleaseOptions
    policy: ReleasePolicy
    decisions: Decisions
    counts: Counts
    domains: Sequence[DomainRow]
    shards: Sequence[Written]
    tokens: int | None
    tokenizer: str
    types: dict[str, str]
    changes: Sequence[str]


def card(facts: CardFacts) -> str:
    """The whole card, front matter included."""
    sections = (
        _about,
        _use,
        _schema,
        _funnel,
        _collection,
        _consent,
        _domains,
        _filters,
        _duplicates,
        _risks,
        _takedown,
        _changes,
        _datasheet,
    )
    body = "\n\n".join("\n".join(section(facts)) for section in sections)
    title = markdown(facts.options.title or TITLE)
    return f"{front_matter(facts.options, facts.counts, facts.shards)}\n# {title} {markdown(facts.options.name)}\n\n{body}\n"


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return lines + [
        "| " + " | ".join(markdown(cell) if isinstance(cell, str) else str(cell) for cell in row) + " |" for row in rows
    ]


def _why(code: str) -> Ours:
    return Ours(f"`{code}`: {REASONS[code].sentence}")


def _ranked(counted: dict[str, int]) -> list[tuple[str, int]]:
    """Most first, then by name."""
    return sorted(counted.items(), key=lambda item: (-item[1], item[0]))


def _about(f: CardFacts) -> list[str]:
    tokens = f", {f.tokens:,} tokens ({markdown(f.tokenizer)})" if f.tokens is not None else ""
    size = sum(shard.text_bytes for shard in f.shards)
    return [
        "## What it is",
        "",
        said(f.options.words, "about", TO_DO),
        "",
        (
            f"{f.counts.rows:,} pages of {f.counts.domains:,} registered domains, {size:,} bytes of text{tokens}. "
            f"Fetched from {f.counts.first_fetched or 'never'} to {f.counts.last_fetched or 'never'}. Every row names its URL, its WARC record, "
            "the rule set that let it in and the digest of its consent evidence."
        ),
        "",
        *_table(("language", "pages"), f.counts.languages.items()),
    ]


def _use(f: CardFacts) -> list[str]:
    repo = f.options.words.get("repo", "OWNER/NAME")  # a name the configuration has checked; it stands in code
    return [
        "## Use it",
        "",
        "```python",
        "from datasets import load_dataset",
        f'rows = load_dataset("{repo}", split="train", streaming=True)',
        "```",
        "",
        "```sql",
        f"SELECT language, count(*) FROM 'hf://datasets/{repo}/data/**/*.parquet' GROUP BY 1;",
        "```",
    ]


def _schema(f: CardFacts) -> list[str]:
    return [
        "## Columns",
        "",
        *_table(
            ("column", "type", "meaning"),
            ((Ours(f"`{name}`"), Ours(f.types[name]), Ours(text)) for name, text in DESCRIPTIONS.items()),
        ),
    ]


def _funnel(f: CardFacts) -> list[str]:
    rows: list[Sequence[object]] = []
    for step in f.decisions.funnel:
        rows.append((step.stage, step.n_in, step.n_out, "", ""))
        rows += [("", "", "", _why(code), n) for code, n in _ranked(step.dropped)]
    return [
        "## Funnel",
        "",
        "URLs, by their latest visit.",
        "",
        *_table(("step", "in", "out", "dropped because", "URLs"), rows),
        "",
        f"Beside the funnel: {f.decisions.older:,} further captures of these URLs.",
    ]


def _collection(f: CardFacts) -> list[str]:
    agent = markdown(f.options.user_agent) if f.options.user_agent else TO_DO
    contact = markdown(f.options.contact) if f.options.contact else TO_DO
    return [
        "## Collection",
        "",
        f"- User-Agent: {agent}",
        f"- Contact: {contact}",
        f"- Crawls: {markdown(', '.join(f.counts.crawls)) or 'none'}",
        f"- Period: {f.counts.first_fetched or 'never'} to {f.counts.last_fetched or 'never'}",
        "- GET requests only; no cookies, logins, payments or CAPTCHAs; one connection a host, with a gap that grows with the host's latency.",
        (
            "- Honoured when fetching, and looked up again for this release: robots.txt (RFC 9309, the groups of AI crawlers included), Content-Signal, "
            "Content-Usage (AIPREF), TDMRep, ai.txt, RSL, X-Robots-Tag and robots meta elements, HTTP 401, 402, 403 and 451."
        ),
    ]


def _consent(f: CardFacts) -> list[str]:
    refused = {code: n for step in f.decisions.funnel if step.stage == "allowed" for code, n in step.dropped.items()}
    return [
        "## Consent",
        "",
        "`yes`: a statement permits AI training. `unknown`: no statement was found; that is not a permission.",
        "",
        *_table(("use", "pages in this release"), ((use, f.counts.use.get(use, 0)) for use in ("yes", "unknown", "no"))),
        "",
        *_table(
            ("kept out because", "URLs"),
            ((_why(code), n) for code, n in _ranked(refused)),
        ),
        *_losses(f),
    ]


def _losses(f: CardFacts) -> list[str]:
    rows = [row for row in f.decisions.losses.to_pylist() if row["other_domains"]]
    if not rows:
        return []
    lines = [
        "",
        "Verified copies that fell with a refused page:",
        "",
        *_table(("refusing domain", "rows", "of other domains"), (tuple(row.values()) for row in rows[:_TOP])),
    ]
    if rows[0]["other_domains"] > WARN_ABOVE or any(row["other_domains"] > WARN_ABOVE for row in rows):
        lines += [
            "",
            f"**Some refusals took more than {WARN_ABOVE} rows of other domains along.** Look at them before publishing (`optout.cluster`).",
        ]
    return lines


def _domains(f: CardFacts) -> list[str]:
    total = sum(row.text_bytes for row in f.domains)
    rows = ((row.domain, row.pages, row.text_bytes, share(row.text_bytes, total)) for row in f.domains[:_TOP])
    return ["## Top domains", "", *_table(("domain", "pages", "text bytes", "share"), rows), "", "All of them: `domains.csv`."]


def _filters(f: CardFacts) -> list[str]:
    return [
        "## Filters",
        "",
        f"Policy `{markdown(f.policy.name)}`, digest `{f.policy.digest}`. Cut from the texts: {markdown(', '.join(f.policy.cut)) or 'nothing'}.",
        "",
        *_table(("rule", "pages dropped"), _ranked(f.decisions.rules)),
    ]


def _duplicates(f: CardFacts) -> list[str]:
    return [
        "## Near-duplicates",
        "",
        (
            f"Word 5-grams, MinHash, verified at Jaccard {f.options.threshold:g}; star clusters without chaining; of each cluster one page is kept "
            f"(`{f.options.keep}`, then the smallest URL). `minhash_cluster_size` allows weighting: {f.counts.clustered:,} rows stand for more than one page, "
            f"the largest cluster has {f.counts.largest_cluster:,}."
        ),
    ]


def _risks(f: CardFacts) -> list[str]:
    return [
        "## Personal data, bias and known limits",
        "",
        said(f.options.words, "risks", TO_DO),
        "",
        (
            "Known limits of the method: language identification errs on short texts and close languages; extraction may lose tables, code and comments; "
            "opt-outs that are stated only in prose are not read; `unknown` use means that nothing was said."
        ),
    ]


def _takedown(f: CardFacts) -> list[str]:
    count = len(f.inputs.tombstones)
    return [
        "## Rights and takedown",
        "",
        f"Rights in each page remain with its holder. {said(f.options.words, 'takedown', f'{TO_DO} (form, response time).')}",
        "",
        f"`TOMBSTONES.parquet` lists {count:,} takedowns (domain, URL or document): remove them from every copy of any release.",
    ]


def _changes(f: CardFacts) -> list[str]:
    return ["## Changes since the last release", "", *(f"- {line}" for line in f.changes)]


def _datasheet(f: CardFacts) -> list[str]:
    questions = {
        "made_by": "Why was it made, and by whom?",
        "not_for": "What should it not be used for?",
        "maintained_by": "Who maintains it, and how long?",
        "cite": "How should it be cited?",
    }
    identity = {**f.inputs.identity, "snapshot": f.inputs.digest}
    return [
        "## Datasheet",
        "",
        *(line for part, question in questions.items() for line in (f"**{question}** {said(f.options.words, part, TO_DO)}", "")),
        "Made from: " + ", ".join(f"{markdown(name)} `{markdown(value)}`" for name, value in sorted(identity.items())) + ".",
    ]

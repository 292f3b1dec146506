"""`README.md` of a release: the dataset card, generated from the run's facts. What only a person can say is marked ✍.

Whatever comes from the web is escaped; numbers come from `summary`, which the shards were checked against.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from corpus.export.card_front import TITLE, front_matter
from corpus.export.consent_counts import USES, not_consent, turned_down
from corpus.export.decide import Decisions
from corpus.export.domains import share
from corpus.export.escape import Ours, markdown
from corpus.export.ports import ReleaseOptions, ReleasePolicy, SnapshotInputs
from corpus.export.refusals import WARN_ABOVE
from corpus.export.schema import DESCRIPTIONS
from corpus.export.shard import Written
from corpus.export.summary import Counts, DomainRow
from corpus.export.words import said
from corpus.model import FunnelStep
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
        *_versions(f.decisions.versions),
    ]


def _versions(step: FunnelStep | None) -> list[str]:
    """The one line of older versions, where the release takes them."""
    if step is None:
        return []
    dropped = "; ".join(f"{_why(code)}: {n:,}" for code, n in _ranked(step.dropped))
    return [
        (
            f"Among them {step.n_in:,} older versions differ so much from the next newer one that they are documents of their own: {step.n_out:,}"
            f" are rows of this release, beside the row of their URL{f' (left out: {dropped})' if dropped else ''}. `id` tells versions apart."
        ),
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
        f"- Honoured when fetching, and looked up again for this release: {markdown('; '.join(f.inputs.protocols)) or TO_DO}.",
    ]


def _consent(f: CardFacts) -> list[str]:
    told = turned_down(f.inputs.turned_away, f.decisions.funnel)
    unknown = f.counts.use.get("unknown", 0)
    return [
        "## Consent",
        "",
        "`yes`: a statement permits AI training. `unknown`: no statement was found; that is not a permission.",
        f"{unknown:,} of {f.counts.rows:,} rows ({share(unknown, f.counts.rows)}) are `unknown`.",
        "",
        *_table(("use", "pages in this release"), ((use, f.counts.use.get(use, 0)) for use in USES)),
        "",
        *_table(
            ("their sites said no by", "URLs not fetched", "stored pages left out"),
            ((_why(row.signal), "not recorded" if row.when_asked is None else row.when_asked, row.when_exported) for row in told),
        ),
        "",
        *_table(
            ("other reasons at this step", "URLs"), ((_why(code), n) for code, n in _ranked(not_consent(f.decisions.funnel)))
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
    running = accumulate(row.text_bytes for row in f.domains[:_TOP])
    rows = (
        (row.domain, row.pages, row.text_bytes, share(row.text_bytes, total), share(so_far, total))
        for row, so_far in zip(f.domains[:_TOP], running, strict=True)
    )
    head = ("domain", "pages", "text bytes", "share", "cumulative")
    return ["## Top domains", "", *_table(head, rows), "", "All of them: `domains.csv`."]


def _filters(f: CardFacts) -> list[str]:
    return [
        "## Filters",
        "",
        f"Policy `{markdown(f.policy.name)}`, digest `{f.policy.digest}`. Cut from the texts: {markdown(', '.join(f.policy.cut)) or 'nothing'}.",
        "",
        *_table(("rule", "pages dropped"), _ranked(f.decisions.rules)),
    ]


def _duplicates(f: CardFacts) -> list[str]:
    dropped: dict[str, int] = next((step.dropped for step in f.decisions.funnel if step.stage == "unique"), {})
    return [
        "## Near-duplicates",
        "",
        (
            f"Word 5-grams, MinHash, verified at Jaccard {f.options.threshold:g}; star clusters without chaining; of each cluster one page is kept "
            f"(`{f.options.keep}`, then the smallest URL). `minhash_cluster_size` allows weighting: {f.counts.clustered:,} rows stand for more than one page, "
            f"the largest cluster has {f.counts.largest_cluster:,}."
        ),
        "",
        *_table(("left out because", "URLs"), ((_why(code), n) for code, n in _ranked(dropped))),
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
    count = len(f.inputs.tombstones) + len(f.inputs.purged)
    return [
        "## Rights and takedown",
        "",
        f"Rights in each page remain with its holder. {said(f.options.words, 'takedown', f'{TO_DO} (form, response time).')}",
        "",
        f"`TOMBSTONES.parquet` lists {count:,} removals (domain, URL or document): remove them from every copy of any release.",
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

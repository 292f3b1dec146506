"""The reference is made from the code, whole, and every link of README and docs leads somewhere."""

from __future__ import annotations

import re
import subprocess
import sys
import unicodedata
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from corpus.app.verify_faults import NEXT, Kind
from corpus.cli.main import VERBS
from corpus.config.tree import Config, CorpusSettings, leaves
from corpus.export.schema import DESCRIPTIONS
from corpus.filter.policy import load_policy
from corpus.filter.schema import SIGNALS_SCHEMA
from corpus.filter.signals_reduced import REDUCED
from corpus.filter.spans import KINDS
from corpus.observe.metrics import METRICS
from corpus.reasons import REASONS
from docs.site.reference import configuration, errors, pages
from tests.doc_pages import DOCS, ROOT

made = cache(pages)
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
_POLICIES = ("balanced", "c4", "dclm", "fineweb", "fineweb2", "gopher", "permissive")

NAMED: dict[str, list[str]] = {
    "verbs": [f"corpus {verb}" for verb in VERBS] + ["corpus ctl pause", "corpus takedown apply", "corpus report run"],
    "configuration": list(leaves(Config(corpus=CorpusSettings(name="x")).model_dump())),
    "columns": list(DESCRIPTIONS),
    "signals": [*SIGNALS_SCHEMA.names[3:], *REDUCED, *KINDS],
    "policies": [rule.name for name in _POLICIES for rule in load_policy(name).rules],
    "reasons": [*REASONS, *(kind.__name__ for kind in errors()), *(kind.value for kind in Kind)],
    "metrics": list(METRICS),
}


@pytest.mark.parametrize("page", sorted(NAMED))
def test_nothing_is_left_out(page: str) -> None:
    """Each page names everything of its kind that the code has; no page is there that this table does not know."""
    text = made()[f"reference/{page}.md"]
    form = "{}\n" if page == "verbs" else "`{}`"
    assert [name for name in NAMED[page] if form.format(name) not in text] == []
    assert {f"reference/{name}.md" for name in NAMED} == set(made())


def test_every_key_says_what_it_means() -> None:
    """No key, default or type of the configuration is an empty cell."""
    rows = [line.split(" | ") for line in configuration().split("\n") if line.startswith("| `")]
    assert len(rows) > 100
    assert [row[0] for row in rows if len(row) != 4 or not all(cell.strip(" |") for cell in row)] == []


def test_every_error_says_what_to_do() -> None:
    """Reasons, errors and faults of `verify`: each has advice of its own, and inherits none by accident."""
    assert all(row.next and row.sentence for row in REASONS.values())
    own = [kind for kind in errors() if "next" in vars(kind)]
    assert {kind.__name__ for kind in errors()} - {kind.__name__ for kind in own} <= {"ConfigError"}  # it is a UsageError
    assert len({kind.next for kind in own}) == len(own)
    assert set(NEXT) == set(Kind)


def test_the_reference_is_never_kept() -> None:
    """It is made when the site is built; a copy in the tree would grow old."""
    assert not (DOCS / "reference").exists()


def _texts() -> Iterator[tuple[str, str]]:
    for path in sorted(DOCS.glob("*.md")):
        yield path.name, path.read_text("utf-8")
    yield from made().items()


def _anchors(text: str) -> set[str]:
    """The anchors that the site's builder gives to headings."""
    plain = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    found = set()
    for heading in re.findall(r"^#+ (.+)$", plain, flags=re.MULTILINE):
        ascii_only = unicodedata.normalize("NFKD", heading).encode("ascii", "ignore").decode()
        found.add(re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", ascii_only).strip().lower()))
    return found


def test_every_link_leads_somewhere() -> None:
    """Links between pages name a page and, where they do, a heading of it; the README's name files of the repository."""
    texts = dict(_texts())
    wrong = []
    for name, text in texts.items():
        for link in _LINK.findall(text):
            if link.startswith(("http://", "https://")):
                continue
            path, _, anchor = link.partition("#")
            target = str((Path("/", name).parent / path).resolve().relative_to("/")) if path else name
            if target not in texts or (anchor and anchor not in _anchors(texts[target])):
                wrong.append(f"{name}: {link}")
    readme = [link.partition("#")[0] for link in _LINK.findall((ROOT / "README.md").read_text("utf-8"))]
    wrong += [f"README.md: {link}" for link in readme if link and "://" not in link and not (ROOT / link).exists()]
    images = [image for text in texts.values() for image in re.findall(r"!\[[^\]]+\]\(([^)]+)\)", text)]
    wrong += [image for image in images if not (DOCS / image).is_file()]
    assert wrong == []
    assert sum(len(_LINK.findall(text)) for text in texts.values()) > 40


@pytest.mark.needs("docs")
def test_the_site_builds_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    """A strict build, without a network, has every page; no page needs a script, style, font or picture of another host."""
    built = subprocess.run(
        [sys.executable, "-m", "properdocs", "build", "--strict", "--site-dir", str(tmp_path)],
        cwd=ROOT, env={"HTTPS_PROXY": "http://127.0.0.1:9", "PATH": "", "PYTHONDONTWRITEBYTECODE": "1"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    assert {str(path.relative_to(tmp_path).with_suffix(".md")) for path in tmp_path.rglob("*.html")} >= {
        name for name, _ in _texts()
    }
    loaded = re.compile(r"""(?:\bsrc=|<link[^>]*\bhref=|\burl\()["']?(?:https?:)?//[^"')\s]+""")
    assert [
        hit for path in tmp_path.rglob("*") if path.suffix in (".html", ".css") for hit in loaded.findall(path.read_text("utf-8"))
    ] == []

"""A new corpus folder: one commented configuration and an empty seeds file. Never overwrites."""

from __future__ import annotations

import re
from pathlib import Path

from corpus.errors import UsageError

TEMPLATE = """\
# A corpus, from seeds to releases. Every key that is not here has a polite default: corpus config show
# Check it with: corpus check      Run it with: corpus run      Stop with Ctrl-C; run it again to resume.

[corpus]
name = "{name}"
# languages = ["cs", "sk"]          # keep only these; default: all

[crawl]
seeds = ["seeds.txt"]               # URLs, or files with one URL a line
contact = ""                        # required: a page about your crawl, or a mailbox
max_pages = 10_000                  # budgets; an absent key is no limit
max_time = "12h"
delay = "2s"                        # least gap between two contacts of a host; robots.txt may ask for more
# scope.domains = ["example.org"]   # default: the seeds' registered domains

[optout]
# profile = "permission-only"       # keep only what says yes to AI training

[filter]
policy = "balanced"                 # fineweb fineweb2 gopher c4 dclm permissive balanced, or a file

[export]
name = "v1"
"""


def scaffold(folder: str, name: str | None) -> list[Path]:
    """Create `corpus.toml` and `seeds.txt`; UsageError where either is already there."""
    home = Path(folder)
    slug = re.sub(r"[^A-Za-z0-9._-]+", "-", name or home.resolve().name).strip("-._")[:64] or "corpus"
    files = {
        home / "corpus.toml": TEMPLATE.format(name=slug),
        home / "seeds.txt": "# one URL a line, with its scheme; lines with # are comments\n",
    }
    for path in files:
        if path.exists():
            raise UsageError("already there; nothing was written", str(path), "choose another folder, or edit that file")
    home.mkdir(parents=True, exist_ok=True)
    for path, text in files.items():
        path.write_text(text, "utf-8")
    return list(files)

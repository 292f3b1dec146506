"""The builder's hook: adds the generated reference to the pages that lie in `docs/`."""

from __future__ import annotations

import sys
from pathlib import Path

from properdocs.config.defaults import ProperDocsConfig
from properdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))


def on_files(files: Files, *, config: ProperDocsConfig) -> Files:
    """Called once per build, before any page is read."""
    from docs.site.reference import pages

    for name, text in pages().items():
        files.append(File.generated(config, name, content=text))
    return files

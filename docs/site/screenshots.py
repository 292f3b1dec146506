"""The pictures in the docs: `python -m docs.site.screenshots demo-corpus/corpus.toml` takes them anew with Chromium.

They show the status page and the report of a run as they look on the demo. Nothing else of the docs needs a browser.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

IMAGES = Path(__file__).resolve().parent.parent / "images"
SIZE = "1100,900"


def take(address: str, name: str) -> None:
    """Open an address at a fixed size and write `docs/images/<name>.png`. Raises CalledProcessError when Chromium fails."""
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as profile:
        argv = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={profile}"]
        argv += [f"--window-size={SIZE}", "--virtual-time-budget=3000", f"--screenshot={IMAGES / name}.png", address]
        subprocess.run(argv, check=True, capture_output=True, timeout=120)


def main(config: str) -> None:
    """Both pictures, from the corpus that a configuration file names."""
    verb = [sys.executable, "-m", "corpus"]
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.html")
        subprocess.run(
            [*verb, "report", "run", "--format", "html", "-o", str(report), "-c", config], check=True, capture_output=True
        )
        take(report.as_uri(), "report")
    with subprocess.Popen([*verb, "status", "--serve", "--port", "0", "-c", config], stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            line = server.stdout.readline()  # "status page at http://127.0.0.1:PORT/ (read-only …"
            take(next(word for word in line.split() if word.startswith("http")), "status")
        finally:
            server.terminate()


if __name__ == "__main__":
    main(sys.argv[1])

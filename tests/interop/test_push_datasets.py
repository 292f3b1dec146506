"""What was pushed is read by the readers of the hub: `load_dataset` streams it over HTTP, by the card's configurations."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.demo_corpus import DemoCorpus, corpus_cli
from tests.hub_standin import HubStandIn

pytestmark = pytest.mark.needs("interop")

REPO = "tester/demo"
PUSH = "from corpus.__main__ import main; main()"
READ = """
import json, sys
from datasets import load_dataset
rows = load_dataset(sys.argv[1], split="train", streaming=True)
print(json.dumps(sorted((row["id"], row["url"], len(row["text"])) for row in rows)))
"""


def test_load_dataset_streams_what_was_pushed(demo_corpus: DemoCorpus, tmp_path: Path) -> None:
    """Every row of the release, by name of the repository alone, from a hub that only this machine knows."""
    folder = demo_corpus.copy(tmp_path / "corpus")
    card = folder / "releases" / "v1" / "README.md"
    card.write_text(
        "\n".join(line for line in card.read_text("utf-8").splitlines() if "TO BE PROVIDED" not in line) + "\n", "utf-8"
    )
    with HubStandIn().serving() as hub:
        env = os.environ | {
            "HF_ENDPOINT": hub.endpoint, "HF_TOKEN": "hf_" + "t" * 34, "HF_HUB_DISABLE_XET": "1", "HF_HOME": str(tmp_path / "hf"),
            "HF_HUB_OFFLINE": "0", "HF_DATASETS_OFFLINE": "0",
        }  # fmt: skip
        command = [sys.executable, "-c", PUSH, "push", "-c", str(folder / "corpus.toml"), "--set", f"publish.repo={REPO}"]
        pushed = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120, check=False)
        assert pushed.returncode == 0, pushed.stderr
        read = subprocess.run(
            [sys.executable, "-c", READ, REPO], env=env, capture_output=True, text=True, timeout=300, check=False
        )
        assert read.returncode == 0, read.stderr[-3000:]
    rows = corpus_cli(
        "sql", "-c", folder / "corpus.toml", "--json", "SELECT id, url, length(text) FROM records ORDER BY id, url"
    ).json["rows"]
    assert json.loads(read.stdout) == rows

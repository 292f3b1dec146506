"""The configuration that crawls the demo web: the shipped defaults, at a pace that only one's own loopback allows.

Pure: origins in, TOML out. Everything not named here is a default, so the demo shows what a real crawl would do.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit


def demo_config(origins: Mapping[str, str], *, root: str = ".") -> str:
    """TOML for a crawl of the demo web. `origins`: host key → `http://host:port`; `root`: `store.root`."""
    seeds = "\n".join(f'    "{origin}/index.html",' for origin in origins.values())
    hosts = {urlsplit(origin).hostname for origin in origins.values()}
    ranges = "127.0.0.1/32" if hosts == {"127.0.0.1"} else "127.10.0.0/24"
    return f"""# Written by `corpus demo`: a small web that was made for this purpose and never leaves this machine.

[corpus]
name = "demo"

[crawl]
seeds = [
{seeds}
]
contact = "https://corpus.example/demo-crawl"
# A gap below one second is accepted only because every address lies in allow_private. Do not copy these lines.
delay = "50ms"
delay_start = "50ms"
latency_factor = 1.0
allow_private = ["{ranges}"]

[store]
root = "{root}"
"""

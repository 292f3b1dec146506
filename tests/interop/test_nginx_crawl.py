"""A real web server, its own access log, and our manners judged by it."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from corpus.app.audit import audit
from corpus.config.load import load_config
from corpus.testing.audit import Group, gap_violations, refused_requests
from corpus.testing.web_log import Contact

DELAY_S = 0.2
PAGES = 12
LINE = re.compile(
    r"(?P<end>[0-9.]+) (?P<took>[0-9.]+) (?P<host>\S+) (?P<addr>\S+) (?P<port>\d+) \"GET (?P<path>\S+) [^\"]*\" (?P<status>\d+) \"(?P<agent>[^\"]*)\""
)
WORDS = "The river {n} rises in the hills, and every spring its water carries sand and stones down to the plain where farmers wait for it. "

CONF = """
daemon off; pid {folder}/nginx.pid; worker_processes 1; error_log {folder}/error.log; {user}
events {{ worker_connections 64; }}
http {{
  types {{ text/html html; text/plain txt; }} default_type text/html;
  log_format ours '$msec $request_time $host $server_addr $server_port "$request" $status "$http_user_agent"';
  access_log {folder}/access.log ours; access_log {folder}/combined-$server_addr.log combined;
  client_body_temp_path {folder}/t; proxy_temp_path {folder}/t; fastcgi_temp_path {folder}/t; uwsgi_temp_path {folder}/t; scgi_temp_path {folder}/t;
  server {{ listen 127.30.0.1:{port}; listen 127.30.0.2:{port}; root {folder}/www; gzip on; gzip_min_length 100; }}
}}
"""


@pytest.fixture
def nginx(tmp_path: Path) -> Iterator[tuple[int, Path]]:
    """nginx on two loopback addresses, serving linked pages and a robots.txt; ended by pid."""
    www = tmp_path / "www"
    www.mkdir()
    for n in range(PAGES):
        links = "".join(f'<a href="/p{m}.html">p{m}</a> ' for m in range(PAGES))
        text = "".join(WORDS.format(n=n * 10 + k) for k in range(8))
        (www / f"p{n}.html").write_text(f"<!DOCTYPE html><title>p{n}</title><p>{text}</p>{links}<a href='/private/x.html'>x</a>")
    (www / "private").mkdir()
    (www / "private" / "x.html").write_text("<p>not for robots</p>")
    (www / "robots.txt").write_text("User-agent: *\nDisallow: /private/\n")
    with socket.socket() as probe:
        probe.bind(("127.30.0.1", 0))
        port = probe.getsockname()[1]
    user = "user root;" if os.geteuid() == 0 else ""
    (tmp_path / "nginx.conf").write_text(CONF.format(folder=tmp_path, port=port, user=user))
    program = next(p for p in ("/usr/sbin/nginx", "/usr/bin/nginx", "nginx") if Path(p).exists() or p == "nginx")
    server = subprocess.Popen([program, "-c", str(tmp_path / "nginx.conf"), "-p", str(tmp_path)], stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            with socket.socket() as probe:
                if probe.connect_ex(("127.30.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        yield port, tmp_path / "access.log"
    finally:
        server.send_signal(signal.SIGQUIT)
        server.wait(10)


@pytest.mark.needs("nginx")
def test_nginx_sees_a_polite_crawler(nginx: tuple[int, Path], tmp_path: Path) -> None:
    """In nginx's own log: robots.txt first, every gap kept on both hosts, the refused page never asked for, all pages got."""
    port, log = nginx
    config = tmp_path / "corpus.toml"
    config.write_text(
        f'[corpus]\nname = "nginx"\n[crawl]\nseeds = ["http://127.30.0.1:{port}/p0.html", "http://127.30.0.2:{port}/p0.html"]\n'
        f'contact = "bot@example.org"\ndelay = "{DELAY_S * 1000:.0f}ms"\ndelay_start = "{DELAY_S * 1000:.0f}ms"\nlatency_factor = 1.0\n'
        'allow_private = ["127.30.0.0/24"]\n[store]\nroot = "out"\n'
    )
    assert load_config(config, environment={}).crawl.delay == DELAY_S
    run = subprocess.run(
        [sys.executable, "-m", "corpus", "crawl", "-c", str(config)], capture_output=True, text=True, timeout=120, check=False
    )
    assert run.returncode == 0, run.stderr
    contacts = [_contact(n, m) for n, m in enumerate(map(LINE.match, log.read_text().splitlines())) if m]
    for address in ("127.30.0.1", "127.30.0.2"):
        ours = [c for c in contacts if c.host == address]
        assert ours[0].target == "/robots.txt"
        assert {c.target for c in ours} >= {f"/p{n}.html" for n in range(PAGES)}
    assert all(c.agent.startswith("CorpusBot/") for c in contacts)
    assert gap_violations(contacts, DELAY_S, Group.HOST, tolerance_s=0.01) == []
    assert refused_requests(contacts, [f"http://127.30.0.{n}:{port}/private/*" for n in (1, 2)]) == []
    assert not any(c.target.startswith("/private/") for c in contacts)
    _judged_by_its_owner(log)


def _judged_by_its_owner(log: Path) -> None:
    """The same by `corpus audit`, which knows nothing of us: over nginx's own formats, fine and coarse."""
    pattern = r'(?P<time>[0-9.]+) (?P<took>[0-9.]+) \S+ (?P<host>\S+) \d+ "(?P<request>[^"]*)" (?P<status>\d+) "(?P<agent>[^"]*)"'
    robots = b"User-agent: *\nDisallow: /private/\n"
    fine = audit(str(log), gap_s=DELAY_S, pattern=pattern, robots=robots)
    assert (fine.ok, fine.unread, fine.groups) == (True, 0, 2)
    assert fine.contacts > 2 * PAGES
    assert fine.closest_s is not None
    assert fine.closest_s >= DELAY_S - 0.01
    assert audit(str(log), gap_s=DELAY_S + 5.0, pattern=pattern).too_soon == fine.contacts - 2
    each = [audit(str(one), gap_s=DELAY_S) for one in sorted(log.parent.glob("combined-*.log"))]
    assert [(coarse.ok, coarse.unread) for coarse in each] == [(True, 0)] * 2
    assert sum(coarse.contacts for coarse in each) == fine.contacts
    assert not any(audit(coarse.log, gap_s=2 * DELAY_S).ok for coarse in each), "a row of them shows what one pair hides"


def _contact(n: int, m: re.Match[str]) -> Contact:
    """A line of nginx's log. It times a request from its first byte to its last, in whole milliseconds."""
    end = float(m["end"])
    start = end - float(m["took"])
    return Contact(
        n, m["addr"], m["addr"], int(m["port"]), m["path"], int(m["status"]), m["agent"], start, end, start, end, "sent"
    )

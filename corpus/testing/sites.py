"""Unpacked documentation as web sites on loopback: real pages to crawl, without asking anybody's server for them.

`make bench-data` unpacks two Debian packages; here every tree of theirs becomes a host of its own, one 127.20.0.x
address each (python3.11-doc first, then the handbook's languages in alphabetical order), all on one port. Plain files,
served as they lie on the disk; nothing outside a site's folder is ever read, and nothing but loopback is listened on.

    python -m corpus.testing.sites bench-data --port 8765 -- corpus run -c configs/docs-site.toml
"""

from __future__ import annotations

import argparse
import asyncio
import mimetypes
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from email.utils import formatdate
from functools import cached_property
from pathlib import Path
from urllib.parse import unquote

from corpus.errors import CorpusError
from corpus.testing.web_answer import Answer, Ask, Name
from corpus.testing.web_log import ContactLog
from corpus.testing.web_server import SimServer

PORT = 8765
"""The port that configs/docs-site.toml and its seeds name."""
_DOC = "tree/usr/share/doc"
_NOT_FOUND = Answer(404, (("Content-Type", "text/html"),), b"<!DOCTYPE html><title>404</title><p>not found</p>\n")
_UNSENT = frozenset({"text/html", "text/css", "text/plain"})
"""Types sent without a charset, as plain file servers do: the pages say it themselves, or do not."""


@dataclass(frozen=True, slots=True)
class Tree:
    """One site: a short name, its loopback address and the folder it serves."""

    name: str
    address: str
    folder: Path


def trees(bench_data: Path) -> list[Tree]:
    """The sites under a `bench-data` folder, in address order. Raises CorpusError when there is none."""
    python = bench_data / _DOC / "python3.11" / "html"
    handbook = bench_data / _DOC / "debian-handbook" / "html"
    folders = [("python", python)] if python.is_dir() else []
    if handbook.is_dir():
        folders += [(f"handbook-{one.name}", one) for one in sorted(handbook.iterdir()) if (one / "index.html").is_file()]
    if not folders:
        raise CorpusError("no documentation here", str(bench_data), "make bench-data")
    # The first place is python's even where only the handbook is unpacked: the seeds name addresses.
    first = 1 if python.is_dir() else 2
    return [Tree(name, f"127.20.0.{number}", folder) for number, (name, folder) in enumerate(folders, start=first)]


@dataclass(frozen=True)
class FileSite:
    """The trees as a `Site` for the test server: files, folders with an index.html, 301 where a slash is missing."""

    trees: tuple[Tree, ...]

    @cached_property
    def _by_address(self) -> Mapping[str, Path]:
        return {tree.address: tree.folder.resolve() for tree in self.trees}

    def names(self) -> Mapping[str, Name]:
        """Hosts are named by their addresses: nothing is asked of a name server."""
        return {tree.address: Name((tree.address,)) for tree in self.trees}

    def down(self) -> frozenset[str]:
        """Every host is up."""
        return frozenset()

    def answer(self, ask: Ask) -> Answer:
        """The file at a path; 404 for what is not there or lies outside; 304 when the client has it already."""
        root = self._by_address.get(ask.host)
        path = unquote(ask.path)
        if root is None or not path.startswith("/") or "\0" in path:
            return _NOT_FOUND
        try:
            return _under(root, path, ask)
        except (OSError, RuntimeError):  # not there, not readable, a name too long, links in a circle
            return _NOT_FOUND


def _under(root: Path, path: str, ask: Ask) -> Answer:
    place = Path(os.path.normpath(f"{root}{path}")).resolve()
    if not place.is_relative_to(root):
        return _NOT_FOUND
    if place.is_dir():
        if not path.endswith("/"):
            return Answer(301, (("Location", f"{ask.path}/"), ("Content-Type", "text/html")), b"moved\n")
        place /= "index.html"
    return _file(place, ask.headers.get("if-none-match", ""))


def _file(place: Path, known_tag: str) -> Answer:
    stat = place.stat()
    tag = f'"{int(stat.st_mtime):x}-{stat.st_size:x}"'
    if known_tag == tag:
        return Answer(304, (("ETag", tag),))
    kind, coding = mimetypes.guess_type(place.name)
    kind = "application/gzip" if coding else kind or "application/octet-stream"
    kind = kind if kind in _UNSENT or not kind.startswith("text/") else f"{kind}; charset=utf-8"
    headers = (("Content-Type", kind), ("Last-Modified", formatdate(stat.st_mtime, usegmt=True)), ("ETag", tag))
    return Answer(200, headers, place.read_bytes())


async def _serve(options: argparse.Namespace, command: Sequence[str]) -> int:
    found = trees(options.folder)
    log = ContactLog(options.log)
    async with SimServer(FileSite(tuple(found)), port=options.port, log=log) as server:
        for tree in found:
            print(f"  http://{tree.address}:{server.port}/  {tree.name}", file=sys.stderr)
        if command:
            child = await asyncio.create_subprocess_exec(*command)
            try:
                code = await child.wait()
            except asyncio.CancelledError:
                # The terminal sent SIGINT to the command as well; it drains, and we serve until it is done.
                code = await child.wait()
        else:
            await asyncio.Event().wait()
            code = 0
    log.close()
    return code


def main(argv: list[str] | None = None) -> int:
    """Serve a `bench-data` folder for as long as a command runs, or until SIGINT. Returns the command's exit code."""
    given = sys.argv[1:] if argv is None else argv
    at = given.index("--") if "--" in given else len(given)
    parser = argparse.ArgumentParser(
        prog="python -m corpus.testing.sites", description="Serve unpacked documentation on loopback."
    )
    parser.add_argument("folder", type=Path, help="where `make bench-data` unpacked it")
    parser.add_argument("--port", type=int, default=PORT)
    parser.add_argument("--log", type=Path, default=None, help="append one JSON line per contact to this file")
    options = parser.parse_args(given[:at])
    try:
        return asyncio.run(_serve(options, given[at + 1 :]))
    except CorpusError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())

"""A model hub on this machine for tests: what the real client asks for a dataset repository, and faults on order.

It keeps files in memory, checks the digest of what it is sent, and logs every request without its body.
"""

from __future__ import annotations

import base64
import hashlib
import http.server
import json
import re
import threading
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.hub_repo import MAIN, Repo, Stored

LARGE = (".parquet", ".zst", ".gz")


@dataclass
class Fault:
    """The next `times` requests whose "METHOD /path" starts with `request` fail: with a status, or (0) by a broken connection.

    `after` lets that many of them through first.
    """

    request: str
    status: int = 0
    times: int = 1
    after: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    message: str = "no"
    done: bool = False
    """The request is carried out all the same; only its answer is wrong."""

    def strikes(self, request: str) -> bool:
        if not request.startswith(self.request) or self.times <= 0:
            return False
        if self.after:
            self.after -= 1
            return False
        self.times -= 1
        return True


class HubStandIn:
    """The hub. `endpoint` is what HF_ENDPOINT must say; `sent` holds the large objects that have arrived."""

    def __init__(self) -> None:
        self.repos: dict[str, Repo] = {}
        self.sent: dict[str, bytes] = {}
        self.log: list[str] = []
        self.tokens: set[str] = set()
        self.faults: list[Fault] = []
        self.pull_requests_go = True
        """Whether the ref of a pull request can be deleted like a branch."""
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self.endpoint = f"http://127.0.0.1:{self._server.server_address[1]}"

    @contextmanager
    def serving(self) -> Iterator[HubStandIn]:
        thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            thread.join()
            self._server.server_close()

    def uploads(self) -> list[str]:
        """Large objects that were put, in order."""
        return [line.rpartition("/")[2] for line in self.log if line.startswith("PUT /_lfs/")]

    def commits(self) -> int:
        return sum("/commit/" in line for line in self.log)


Answer = tuple[int, Any, dict[str, str]]
_REPO = re.compile(r"^/api/datasets/([^/]+/[^/]+)(/.*)?$")
_RESOLVE = re.compile(r"^/datasets/([^/]+/[^/]+)/resolve/([^/]+)/(.*)$")
_MISSING: Answer = (404, {"error": "Repository not found"}, {"X-Error-Code": "RepoNotFound"})
_NO_REVISION: Answer = (404, {"error": "Invalid rev id"}, {"X-Error-Code": "RevisionNotFound"})
_NO_ENTRY: Answer = (404, {"error": "not found"}, {"X-Error-Code": "EntryNotFound"})
_DONE: Answer = (200, {}, {})


def answer(hub: HubStandIn, method: str, raw: str, query: str, body: bytes) -> Answer:
    """Status, JSON value or raw bytes, headers; `raw` is the path as it was sent."""
    path = urllib.parse.unquote(raw)
    if path == "/api/repos/create":
        told = json.loads(body)
        name = f"{told.get('organization') or 'tester'}/{told['name']}"
        known = name in hub.repos
        hub.repos.setdefault(name, Repo(told.get("visibility") == "private" or bool(told.get("private"))))
        return (409 if known else 200), {"url": f"{hub.endpoint}/datasets/{name}", "id": name, "name": name}, {}
    if path == "/api/validate-yaml":
        return 200, {"errors": [], "warnings": []}, {}
    if path.endswith("/info/lfs/objects/batch"):
        return 200, {"transfer": "basic", "objects": [_wanted(hub, item) for item in json.loads(body)["objects"]]}, {}
    if path.startswith("/_lfs/"):
        oid = path.removeprefix("/_lfs/")
        if hashlib.sha256(body).hexdigest() != oid:
            return 400, {"error": "bad digest"}, {}
        hub.sent[oid] = body
        return 200, {}, {}
    if path.startswith("/_verify/"):
        return (200 if path.removeprefix("/_verify/") in hub.sent else 404), {}, {}
    if match := _REPO.match(raw):
        repo = hub.repos.get(match[1])
        steps = [urllib.parse.unquote(step) for step in (match[2] or "/").split("/")[1:]]
        return _MISSING if repo is None else _api(hub, repo, match[1], method, steps, query, body)
    if match := _RESOLVE.match(raw):
        repo = hub.repos.get(match[1])
        return _MISSING if repo is None else _resolve(repo, *map(urllib.parse.unquote, match.groups()[1:]))
    return 404, {"error": f"no route {method} {path}"}, {}


def _resolve(repo: Repo, name: str, path: str) -> Answer:
    revision = repo.resolve(name)
    if revision is None:
        return _NO_REVISION
    stored = repo.trees[revision].get(path)
    if stored is None:
        return _NO_ENTRY
    etag = stored.oid if stored.large else stored.entry["oid"]
    linked = {"X-Linked-Etag": f'"{etag}"', "X-Linked-Size": str(len(stored.data))} if stored.large else {}
    return 200, stored.data, {"ETag": f'"{etag}"', "X-Repo-Commit": revision, "Accept-Ranges": "bytes", **linked}


def _wanted(hub: HubStandIn, item: dict[str, Any]) -> dict[str, Any]:
    entry = {"oid": item["oid"], "size": item["size"], "authenticated": True}
    if item["oid"] not in hub.sent:
        entry["actions"] = {
            "upload": {"href": f"{hub.endpoint}/_lfs/{item['oid']}"},
            "verify": {"href": f"{hub.endpoint}/_verify/{item['oid']}"},
        }
    return entry


def _api(hub: HubStandIn, repo: Repo, name: str, method: str, steps: list[str], query: str, body: bytes) -> Answer:
    verb, rest = steps[0], steps[1:]
    told = json.loads(body) if body[:1] == b"{" and verb != "commit" else {}
    revision = (repo.resolve(rest[0]) if rest else None) or ""
    match verb:
        case "" | "revision":
            return _info(repo, name, rest[0] if rest else "main")
        case "preupload":
            return 200, {"files": [_mode(repo, item) for item in told["files"]], "commitOid": repo.commits[-1]}, {}
        case "commit":
            return _commit(hub, repo, name, body)
        case "tree" | "paths-info" | "commits" if not revision:
            return _NO_REVISION
        case "tree":
            return _tree(repo.trees[revision], "/".join(rest[1:]), recursive="recursive=true" in query.lower())
        case "paths-info":
            paths = told["paths"] if told else urllib.parse.parse_qs(body.decode())["paths"]
            return 200, [repo.trees[revision][path].entry | {"path": path} for path in paths if path in repo.trees[revision]], {}
        case "commits":
            return 200, [_told(commit) for commit in reversed(_back(repo, revision))], {}
        case "refs":
            return 200, _refs(repo, pull_requests="include_prs" in query), {}
        case "super-squash":
            repo.squash(f"refs/heads/{rest[0]}")
            return _DONE
        case "branch" | "tag" if method == "DELETE":
            ref = rest[0] if rest[0].startswith("refs/") else f"refs/{'heads' if verb == 'branch' else 'tags'}/{rest[0]}"
            if ref.startswith("refs/pr/") and not hub.pull_requests_go:
                return 400, {"error": "Invalid reference for a branch"}, {}
            return _DONE if repo.refs.pop(ref, None) or repo.hoards else _NO_REVISION
        case "lfs-files" if rest == ["batch"]:
            digests = set(told["deletions"]["sha"])
            repo.delete_objects(digests, rewrite=told["deletions"]["rewriteHistory"])
            for digest in digests:
                hub.sent.pop(digest, None)
            return _DONE
        case "lfs-files":
            return 200, [_large(oid, path, hub) for oid, path in repo.objects.items()], {}
    return 404, {"error": f"no route {verb}"}, {}


def _info(repo: Repo, name: str, revision: str) -> Answer:
    found = repo.resolve(revision)
    if found is None:
        return _NO_REVISION
    siblings = [{"rfilename": path} for path in repo.trees[found]]
    info = {"id": name, "_id": "1", "sha": found, "private": repo.private, "tags": [], "siblings": siblings}
    return 200, info | {"downloads": 0, "likes": 0, "gated": False, "disabled": False}, {}


def _mode(repo: Repo, item: dict[str, Any]) -> dict[str, Any]:
    path = item["path"]
    known = repo.files[path].entry["oid"] if path in repo.files else None
    return {"path": path, "uploadMode": "lfs" if path.endswith(LARGE) else "regular", "shouldIgnore": False, "oid": known}


def _back(repo: Repo, revision: str) -> list[str]:
    found = [revision]
    while parent := repo.parents.get(found[-1]):
        found.append(parent)
    return found[::-1]


def _told(commit: str) -> dict[str, Any]:
    return {"id": commit, "authors": [], "date": "2026-01-01T00:00:00.000Z", "title": "", "message": ""}


def _large(oid: str, path: str, hub: HubStandIn) -> dict[str, Any]:
    size = len(hub.sent.get(oid, b""))
    return {"fileOid": oid, "filename": path, "oid": oid, "pushedAt": "2026-01-01T00:00:00.000Z", "ref": "main", "size": size}


def _refs(repo: Repo, *, pull_requests: bool) -> dict[str, Any]:
    def of(prefix: str) -> list[dict[str, str]]:
        return [
            {"name": ref.removeprefix(prefix), "ref": ref, "targetCommit": commit}
            for ref, commit in repo.refs.items()
            if ref.startswith(prefix)
        ]

    found = {"branches": of("refs/heads/"), "tags": of("refs/tags/"), "converts": of("refs/convert/")}
    return found | ({"pullRequests": of("refs/pr/")} if pull_requests else {})


def _tree(files: dict[str, Stored], below: str, *, recursive: bool) -> Answer:
    """Entries below a folder: all files, or files and folders of one level."""
    found: dict[str, dict[str, Any]] = {}
    for path, stored in files.items():
        if below and not path.startswith(f"{below}/"):
            continue
        rest = path.removeprefix(f"{below}/") if below else path
        top = path.removesuffix(rest) + rest.partition("/")[0]
        deep = "/" in rest and not recursive
        found[top if deep else path] = (
            {"type": "directory", "oid": "0" * 40, "size": 0, "path": top} if deep else stored.entry | {"path": path}
        )
    if below and not found:
        return _NO_ENTRY
    return 200, list(found.values()), {}


def _commit(hub: HubStandIn, repo: Repo, name: str, body: bytes) -> Answer:
    files = dict(repo.files)
    for line in filter(str.strip, body.decode().splitlines()):
        told = json.loads(line)
        key, value = told["key"], told["value"]
        if key == "header" and value.get("parentCommit", repo.commits[-1]) != repo.commits[-1]:
            return 412, {"error": "the branch has moved"}, {}
        if key == "file":
            files[value["path"]] = Stored(base64.b64decode(value["content"]), large=False)
        elif key == "lfsFile":
            if value["oid"] not in hub.sent:
                return 400, {"error": f"missing object {value['oid']}"}, {}
            files[value["path"]] = Stored(hub.sent[value["oid"]], large=True)
        elif key == "deletedFile":
            files.pop(value["path"], None)
    made = repo.commit(files, MAIN)
    return 200, {"success": True, "commitOid": made, "commitUrl": f"{hub.endpoint}/datasets/{name}/commit/{made}"}, {}


def _handler(hub: HubStandIn) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            """Nothing goes to the terminal: `HubStandIn.log` has it."""

        def _handle(self) -> None:
            split = urllib.parse.urlsplit(self.path)
            path = urllib.parse.unquote(split.path)
            request = f"{self.command} {path}"
            fault = next((fault for fault in hub.faults if fault.strikes(request)), None)
            if fault is not None and not fault.status:
                self.rfile.read(min(int(self.headers.get("Content-Length") or 0), 1024))
                hub.log.append(f"broken {request}")
                self.close_connection = True
                return
            body = self._body()
            hub.log.append(request)
            hub.tokens.add(self.headers.get("Authorization") or "")
            code, value, headers = (
                answer(hub, self.command, split.path, split.query, body) if fault is None or fault.done else (0, None, {})
            )
            if fault is not None:
                code, value, headers = fault.status, {"error": fault.message}, fault.headers
            self._send(code, value, headers)

        def _body(self) -> bytes:
            if "chunked" not in (self.headers.get("Transfer-Encoding") or ""):
                return self.rfile.read(int(self.headers.get("Content-Length") or 0))
            parts = []
            while size := int(self.rfile.readline().split(b";")[0], 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)

        def _send(self, code: int, value: Any, headers: dict[str, str]) -> None:
            raw = value if isinstance(value, bytes) else json.dumps(value).encode()
            kind = "application/octet-stream" if isinstance(value, bytes) else "application/json"
            if (
                isinstance(value, bytes)
                and self.command == "GET"
                and (match := re.match(r"bytes=(\d+)-(\d*)", self.headers.get("Range") or ""))
            ):
                start, stop = int(match[1]), int(match[2] or len(raw) - 1)
                headers = headers | {"Content-Range": f"bytes {start}-{min(stop, len(raw) - 1)}/{len(raw)}"}
                code, raw = 206, raw[start : stop + 1]
            self.send_response(code)
            for name, text in {
                "Content-Type": kind,
                "Content-Length": str(len(raw)),
                "X-Request-Id": "stand-in",
                **headers,
            }.items():
                self.send_header(name, text)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(raw)

        do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = _handle  # noqa: N815  (the library's names)

    return Handler

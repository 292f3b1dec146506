"""The model hub behind one small surface: what a repository holds, one upload, and plain words for whatever goes wrong.

Uses the real client (huggingface-hub). The token comes from the environment or the client's own store; it is never asked
for, never kept, and cut out of every sentence that comes back. Errors never repeat a URL: links for uploads are signed.
"""

from __future__ import annotations

import fnmatch
import hashlib
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from corpus.errors import CorpusError, UsageError

if TYPE_CHECKING:
    from huggingface_hub import HfApi

AGAIN = "nothing here was changed; run corpus push again: what has arrived is not sent twice"
_SAID_MAX = 300
_PLAIN: dict[int, tuple[str, str]] = {
    400: ("the hub did not accept the upload", AGAIN),
    401: (
        "the hub does not accept the token, or there is none",
        "set HF_TOKEN to a token that may write, or log in with hf auth login",
    ),
    403: ("the token may not write to this repository", "use a token with write access, or change publish.repo"),
    404: ("there is no such repository, or the token cannot see it", "check publish.repo and the token"),
    409: ("somebody else is changing the repository, or the name is taken", AGAIN),
    412: ("the repository changed while this push was on its way", AGAIN),
    413: ("the hub finds a file too large", "lower export.shard_bytes and export anew"),
    429: ("the hub asks us to slow down", "wait a few minutes; " + AGAIN),
}


class HubError(CorpusError):
    """The hub said no, or did not answer. `status` is the HTTP status, 0 without one."""

    next = "do what the hint says for this status, then push again: what arrived is not sent twice"

    def __init__(self, what: str, where: str = "", hint: str = "", status: int = 0) -> None:
        super().__init__(what, where, hint)
        self.args = (what, where, hint, status)
        self.status = status


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file of a repository. `digest` is its SHA-256 for large files (`large`), else its git blob id; both hex."""

    size: int
    digest: str
    large: bool

    def is_file(self, path: Path) -> bool:
        """Whether a local file has the same bytes."""
        if path.stat().st_size != self.size:
            return False
        return _digest(path, hashlib.sha256() if self.large else _blob(self.size)) == self.digest


class Hub:
    """One dataset repository. Every call raises HubError in plain words when it fails."""

    def __init__(self, repo: str) -> None:
        try:
            from huggingface_hub import HfApi
        except ImportError:
            raise UsageError(
                "the hub's client is not installed", "huggingface-hub", "pip install 'huggingface-hub>=1.20,<3'"
            ) from None
        self.repo = repo
        self.endpoint = os.environ.get("HF_ENDPOINT") or None
        self._api: HfApi = HfApi(endpoint=self.endpoint)

    @property
    def api(self) -> HfApi:
        """The client itself, for calls that only one caller makes; `explained` turns its errors into plain words."""
        return self._api

    def state(self) -> tuple[str, bool] | None:
        """(commit, private) of the repository; None when it does not exist or the token cannot see it."""
        try:
            with explained(self.repo):
                info = self._api.repo_info(self.repo, repo_type="dataset")
        except HubError as error:
            if error.status == 404:
                return None
            raise
        return str(info.sha), bool(info.private)

    def create(self, *, private: bool) -> str:
        """Make the repository; its first commit."""
        with explained(self.repo):
            self._api.create_repo(self.repo, repo_type="dataset", private=private, exist_ok=True)
            return str(self._api.repo_info(self.repo, repo_type="dataset").sha)

    def files(self, revision: str) -> dict[str, RemoteFile]:
        """Every file of a revision, with the digest the hub computed."""
        with explained(self.repo):
            entries = list(self._api.list_repo_tree(self.repo, recursive=True, revision=revision, repo_type="dataset"))
        found = {}
        for entry in entries:
            size = getattr(entry, "size", None)
            if size is None:
                continue  # a folder
            lfs = getattr(entry, "lfs", None)
            found[entry.path] = RemoteFile(int(size), str(lfs.sha256 if lfs else getattr(entry, "blob_id", "")), lfs is not None)
        return found

    def upload(self, folder: Path, paths: Sequence[str], gone: Sequence[str], *, parent: str, message: str) -> str:
        """Send `paths` of a folder and delete `gone`, in as few commits as the client can; returns the last commit.

        Refused with status 412 when the repository has moved on from `parent`. Large files that have arrived before are
        not sent again.
        """
        with explained(self.repo), _quiet():
            told = self._api.upload_folder(
                repo_id=self.repo, repo_type="dataset", folder_path=folder, commit_message=message, parent_commit=parent,
                allow_patterns=[_literal(path) for path in paths] or [_NOTHING], delete_patterns=[_literal(path) for path in gone] or None,
            )  # fmt: skip
        return str(told.oid)

    def read(self, path: str, revision: str) -> bytes:
        """A small file's bytes, as a reader of the dataset gets them."""
        with explained(self.repo), _quiet(), tempfile.TemporaryDirectory() as folder:
            got = self._api.hf_hub_download(self.repo, path, repo_type="dataset", revision=revision, local_dir=folder)
            return Path(got).read_bytes()


_NOTHING = "\0"
"""A pattern that no path matches."""


def _literal(path: str) -> str:
    """A pattern that matches this path alone."""
    pattern = "".join(f"[{ch}]" if ch in "*?[" else ch for ch in path)
    assert fnmatch.fnmatchcase(path, pattern), "an escaped path matches itself"
    return pattern


@contextmanager
def explained(where: str) -> Iterator[None]:
    """The client's and the network's errors as HubError, without URLs and without the token."""
    import huggingface_hub.errors as hub
    from huggingface_hub.errors import HTTPError  # type: ignore[attr-defined]  # httpx's, whichever the client stands on

    try:
        yield
    except hub.HFValidationError:
        raise UsageError("not a repository name the hub accepts", "publish.repo", 'write "owner/name"') from None
    except hub.LocalTokenNotFoundError:
        raise HubError(*_of_status(401, where, ""), 401) from None
    except (HTTPError, OSError, RuntimeError, ValueError) as error:
        raise _plain(error, where) from None


def _plain(error: BaseException, where: str) -> HubError:
    """The first answer of the hub in a chain of exceptions decides; without one, it is the network."""
    from huggingface_hub.errors import HTTPError  # type: ignore[attr-defined]

    seen: BaseException | None = error
    while seen is not None:
        response = getattr(seen, "response", None)
        status = getattr(response, "status_code", None)
        if isinstance(status, int):
            heard = str(getattr(seen, "server_message", None) or "")
            if status == 429 and response is not None and (wait := response.headers.get("retry-after", "")):
                heard = f"come back in {wait} s. {heard}"
            return HubError(*_of_status(status, where, heard), status)
        if isinstance(seen, HTTPError) or (isinstance(seen, OSError) and seen.filename is None):
            xet = "; a hub without Xet storage needs HF_HUB_DISABLE_XET=1" if isinstance(seen, ConnectionError) else ""
            return HubError(f"the connection to the hub failed ({type(seen).__name__})", where, AGAIN + xet)
        seen = seen.__cause__ or seen.__context__
    return HubError(f"the upload failed ({type(error).__name__}): {clean(str(error))}", where, AGAIN)


def _of_status(status: int, where: str, heard: str) -> tuple[str, str, str]:
    what, hint = _PLAIN.get(status, (f"the hub answered {status}", AGAIN))
    if status >= 500:
        what, hint = "the hub is in trouble", AGAIN
    text = clean(heard)
    return f"{what} ({status})" + (f": {text}" if text else ""), where, hint


def clean(text: str) -> str:
    """What the hub said, short, printable, without the token and without links."""
    from huggingface_hub import get_token

    if token := get_token():
        text = text.replace(token, "***")
    words = ("(link)" if "://" in word else word for word in text.split())
    return "".join(ch for ch in " ".join(words)[:_SAID_MAX] if ch.isprintable())


@contextmanager
def _quiet() -> Iterator[None]:
    """No progress bars and no warnings of the client's own: they would print signed links."""
    import logging as levels

    from huggingface_hub.utils import logging
    from huggingface_hub.utils.tqdm import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars

    bars, level = not are_progress_bars_disabled(), logging.get_verbosity()
    disable_progress_bars()
    logging.set_verbosity(levels.CRITICAL)
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            enable_progress_bars()


def _blob(size: int) -> hashlib._Hash:
    return hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)


def _digest(path: Path, digest: hashlib._Hash) -> str:
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()

"""What a hub still remembers of a repository: its refs, their revisions, its large objects; and how to make it forget.

Deleting is asked for and then looked at: a hub's word that something is gone counts for nothing until it answers 404. An
answer that could mean something else (no access, no repository, trouble) is an error, never "gone".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from corpus.app.hub import Hub, HubError, explained

MAIN = "refs/heads/main"
AGAIN = "what was done stays done; run corpus push --purge-history again, it goes on from here"
_REFUSED = frozenset({400, 403, 404, 405, 501})
"""Answers of a hub that does not let a ref of this kind be deleted; whether it matters is asked afterwards."""


@dataclass(frozen=True, slots=True)
class Ref:
    """`kind` is branch | tag | convert | pull-request; `name` is full (`refs/pr/1`)."""

    kind: str
    name: str
    commit: str


@dataclass(frozen=True, slots=True)
class Asked:
    """One question about something that should be gone, and the status that came back (200: it is still served)."""

    what: str
    status: int

    @property
    def gone(self) -> bool:
        return self.status == 404


class HubHistory:
    """The history of one dataset repository. Every call raises HubError in plain words when it fails."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._api = hub.api
        self.repo = hub.repo

    def refs(self) -> list[Ref]:
        """Every ref: branches, tags, the hub's own conversions, pull requests."""
        with self._asking():
            found = self._api.list_repo_refs(self.repo, repo_type="dataset", include_pull_requests=True)
        kinds = {
            "branch": found.branches, "tag": found.tags, "convert": found.converts, "pull-request": found.pull_requests or [],
        }  # fmt: skip
        return [Ref(kind, str(item.ref), str(item.target_commit)) for kind, items in kinds.items() for item in items]

    def revisions(self, ref: Ref) -> list[str]:
        """Revisions a ref reaches, newest first."""
        with self._asking():
            return [
                str(commit.commit_id)
                for commit in self._api.list_repo_commits(self.repo, repo_type="dataset", revision=ref.commit)
            ]

    def large(self) -> dict[str, str]:
        """Digest → a file name of every large object the repository keeps, in whatever revision."""
        with self._asking():
            return {str(item.file_oid): str(item.filename) for item in self._api.list_lfs_files(self.repo, repo_type="dataset")}

    def squash(self) -> None:
        """Make main one revision."""
        with self._asking():
            self._api.super_squash_history(
                self.repo, repo_type="dataset", branch="main", commit_message="One revision: earlier ones are purged"
            )

    def drop(self, ref: Ref) -> bool:
        """Delete a ref; False when the hub does not allow that."""
        try:
            with self._asking():
                if ref.kind == "tag":
                    self._api.delete_tag(self.repo, tag=ref.name.removeprefix("refs/tags/"), repo_type="dataset")
                else:
                    self._api.delete_branch(self.repo, branch=ref.name.removeprefix("refs/heads/"), repo_type="dataset")
        except HubError as error:
            if error.status in _REFUSED:
                return False
            raise
        return True

    def delete_large(self, digests: Sequence[str]) -> None:
        """Delete large objects for good, and rewrite whatever history still names them."""
        with self._asking():
            wanted = set(digests)
            items = [item for item in self._api.list_lfs_files(self.repo, repo_type="dataset") if item.file_oid in wanted]
            self._api.permanently_delete_lfs_files(self.repo, items, rewrite_history=True, repo_type="dataset")

    def ask(self, revision: str, paths: Sequence[str]) -> list[Asked]:
        """Ask for an old revision as a reader would: by its name, and for files it held."""
        from huggingface_hub import hf_hub_url

        answers = [
            Asked("revision", self._status(partial(self._api.repo_info, self.repo, repo_type="dataset", revision=revision)))
        ]
        for path in paths:
            url = hf_hub_url(self.repo, path, repo_type="dataset", revision=revision, endpoint=self._hub.endpoint)
            answers.append(Asked(path, self._status(partial(self._api.get_hf_file_metadata, url=url))))
        return answers

    def _status(self, question: Callable[[], object]) -> int:
        """200 when it was answered, 404 when the hub says that this revision or file is not there."""
        from huggingface_hub.errors import EntryNotFoundError, RevisionNotFoundError

        with self._asking():
            try:
                question()
            except (RevisionNotFoundError, EntryNotFoundError):
                return 404
        return 200

    @contextmanager
    def _asking(self) -> Iterator[None]:
        try:
            with explained(self.repo):
                yield
        except HubError as error:
            raise HubError(error.what, error.where, AGAIN, error.status) from None

"""Small objects of a bucket, kept on this machine between runs: commit records, logs, authority files.

A kept copy is used only when the store has just said (in a listing, or by a conditional request) that the object still
has the ETag it was kept under; for names that are the digest of their content nobody needs to be asked. Losing the
folder costs requests, nothing else.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path

from corpus.store.s3_objects import S3Objects
from corpus.store.writers import part_name

DIGEST_NAMED = "consent/files/"
"""Names under here end in the SHA-256 of their content, which readers check."""
KEPT_BYTES_MAX = 4 * 2**20
"""Larger objects are not kept."""
AHEAD = 64
AT_ONCE = 16
"""Who reads one object of a listing usually reads those behind it: so many are fetched together."""


class CachedObjects:
    """`ObjectStore` that reads `inner` through a folder; writing and listing go straight to it."""

    def __init__(self, inner: S3Objects, folder: Path) -> None:
        self.inner, self._folder = inner, folder
        self._listed: dict[str, str] = {}
        """ETags the store has just told, each good for one read."""

    def put_new(self, name: str, data: bytes) -> None:
        self.inner.put_new(name, data)

    def put_file_new(self, name: str, local_path: Path) -> None:
        self.inner.put_file_new(name, local_path)

    def exists(self, name: str) -> bool:
        return self.inner.exists(name)

    def delete(self, name: str) -> None:
        self._listed.pop(name, None)
        self.inner.delete(name)

    def list(self, prefix: str) -> list[str]:
        found = {item.name: item.etag for item in self.inner.listing(prefix)}
        self._listed |= found
        return sorted(found)

    def get(self, name: str) -> bytes:
        if name.startswith(DIGEST_NAMED):
            data = self._kept(name, "")
            return self._keep(name, "", self.inner.get(name)) if data is None else data
        etag = self._listed.pop(name, "") or self._etag(name)
        data = self._kept(name, etag) if etag else None
        return self._fetch(name) if data is None else data

    def _fetch(self, name: str) -> bytes:
        """The object from the store, and with it those that were listed behind it and are not here."""
        folder = name.rpartition("/")[0]
        behind = [n for n in self._listed if n > name and n.rpartition("/")[0] == folder][:AHEAD]
        missing = [n for n in behind if self._kept(n, self._listed[n]) is None]
        if not missing:
            return self._fetched(name)
        with ThreadPoolExecutor(AT_ONCE) as pool:
            mine = pool.submit(self._fetched, name)
            others = [pool.submit(self._fetched, n) for n in missing]
        for other in others:
            other.exception()  # whoever asks for that one will hear of it
        return mine.result()

    def _fetched(self, name: str) -> bytes:
        data, etag = self.inner.get_tagged(name)
        return self._keep(name, etag, data)

    def _etag(self, name: str) -> str:
        head = self.inner.head(name) if self._has_any(name) else None
        return str(head["ETag"]) if head else ""

    def _has_any(self, name: str) -> bool:
        return self._path(name, "").parent.is_dir()

    def _path(self, name: str, etag: str) -> Path:
        place = sha256(name.encode()).hexdigest()
        return self._folder / place[:2] / place[2:] / sha256(etag.encode()).hexdigest()[:32]

    def _kept(self, name: str, etag: str) -> bytes | None:
        try:
            return self._path(name, etag).read_bytes()
        except FileNotFoundError:
            return None

    def _keep(self, name: str, etag: str, data: bytes) -> bytes:
        """Keep a copy where there is room for it; a full disk costs the copy, never the read."""
        path = self._path(name, etag)
        part = path.with_name(part_name())
        if len(data) <= KEPT_BYTES_MAX:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                part.write_bytes(data)
                part.replace(path)
            except OSError:
                part.unlink(missing_ok=True)
        return data

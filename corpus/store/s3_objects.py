"""Objects in a bucket: created with `If-None-Match: *`, so that of many writers exactly one makes a name.

A name appears with its whole content or not at all: small objects are one request, large ones a multipart upload whose
completion carries the same condition. Each object bears a token of the try that made it, so an answer that was lost on
the way is told from a name that somebody else took. Picklable: a copy connects anew.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import secrets
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from corpus.errors import AlreadyExists, StoreError
from corpus.store.objects import check_name
from corpus.store.s3_place import S3Place, connect
from corpus.store.s3_retry import Patience, answer_of, failures
from corpus.store.s3_uploads import UploadJournal

T = TypeVar("T")
PART_BYTES = 16 * 2**20
PARTS_AT_ONCE = 4
PARTS_MAX = 9_000
"""S3 allows 10,000; a larger file gets larger parts."""
_CHUNK = 1 << 20
_PROBE, _PROBE_TEXT = (
    "probe",
    b"A second create of this object must fail: that is how corpus knows that the store can be trusted.\n",
)


@dataclass(frozen=True, slots=True)
class Listed:
    """One object of a listing. `etag` changes when the content does; `modified` is epoch seconds, to the second."""

    name: str
    etag: str
    bytes: int
    modified: float


class S3Objects:
    """`ObjectStore` over one bucket and prefix. `journal` remembers multipart uploads under way, so that a crash's are found."""

    def __init__(self, place: S3Place, journal: UploadJournal | None = None, patience: Patience | None = None) -> None:
        self.place = place
        self._journal, self._patience = journal, patience or Patience()
        self._client: Any = None

    def __getstate__(self) -> tuple[S3Place, UploadJournal | None, Patience]:
        return self.place, self._journal, self._patience

    def __setstate__(self, state: tuple[S3Place, UploadJournal | None, Patience]) -> None:
        self.place, self._journal, self._patience = state
        self._client = None

    @property
    def client(self) -> Any:
        if self._client is None:
            self._client = connect(self.place)
        return self._client

    # ---- the port

    def put_new(self, name: str, data: bytes) -> None:
        self._put(name, data, only_new=True)

    def put_file_new(self, name: str, local_path: Path) -> None:
        self._put_file(name, local_path, only_new=True)

    def get(self, name: str) -> bytes:
        return self.get_tagged(name)[0]

    def exists(self, name: str) -> bool:
        return self.head(name) is not None

    def list(self, prefix: str) -> list[str]:
        return sorted(found.name for found in self.listing(prefix))

    def delete(self, name: str) -> None:
        key = self.place.key(name)
        self._again(lambda _: self.client.delete_object(Bucket=self.place.bucket, Key=key), name)

    # ---- beyond the port

    def replace_file(self, name: str, local_path: Path) -> None:
        """Put a file's content under a name that may be taken: readers see the old object or the new one, whole."""
        self._put_file(name, local_path, only_new=False)

    def get_tagged(self, name: str) -> tuple[bytes, str]:
        """(content, ETag)."""
        key = self.place.key(name)

        def read(_: int) -> tuple[bytes, str]:
            answer = self._found(name, lambda: self.client.get_object(Bucket=self.place.bucket, Key=key))
            return bytes(answer["Body"].read()), str(answer["ETag"])

        return self._again(read, name)

    def get_range(self, name: str, start: int, length: int) -> bytes:
        """At most `length` bytes from `start`; fewer at the end of the object, none behind it."""
        key = self.place.key(name)
        span = f"bytes={start}-{start + length - 1}"

        def read(_: int) -> bytes:
            try:
                answer = self._found(name, lambda: self.client.get_object(Bucket=self.place.bucket, Key=key, Range=span))
            except failures() as error:
                if answer_of(error).status == 416:
                    return b""
                raise
            return bytes(answer["Body"].read())

        return self._again(read, name)

    def get_file(self, name: str, out: BinaryIO) -> str:
        """Write an object's content into a file; a connection that breaks is taken up where it broke. Returns the SHA-256 (hex)."""
        key, digest = self.place.key(name), hashlib.sha256()
        state = {"at": 0, "etag": ""}

        def read(_: int) -> None:
            more = {"Range": f"bytes={state['at']}-", "IfMatch": state["etag"]} if state["at"] else {}
            answer = self._found(name, lambda: self.client.get_object(Bucket=self.place.bucket, Key=key, **more))
            state["etag"] = answer["ETag"]
            left = int(answer["ContentLength"])
            while left:
                chunk = answer["Body"].read(min(_CHUNK, left))
                if not chunk:
                    raise ConnectionError("the body ended early")
                out.write(chunk)
                digest.update(chunk)
                state["at"] += len(chunk)  # type: ignore[operator]
                left -= len(chunk)

        self._again(read, name)
        return digest.hexdigest()

    def head(self, name: str) -> dict[str, Any] | None:
        """ETag, size and metadata of an object; None when it is not there."""
        key = self.place.key(name)

        def ask(_: int) -> dict[str, Any] | None:
            try:
                return dict(self.client.head_object(Bucket=self.place.bucket, Key=key))
            except failures() as error:
                answer = answer_of(error)
                if answer.status == 404 and answer.code != "NoSuchBucket":
                    return None
                raise

        return self._again(ask, name)

    def listing(self, prefix: str) -> Iterator[Listed]:
        """Objects whose names begin with the prefix, in the store's order; names no store of ours gives are passed over."""
        if any(part in ("..", ".") for part in prefix.split("/")) or prefix.startswith("/"):
            raise StoreError(f"not a valid object prefix: {prefix[:200]!r}")
        token: dict[str, str] = {}
        while True:
            arguments = {"Bucket": self.place.bucket, "Prefix": self.place.prefix + prefix, **token}
            page = self._again(lambda _, a=arguments: self.client.list_objects_v2(**a), prefix or str(self.place))  # type: ignore[misc]
            for item in page.get("Contents", ()):
                name = str(item["Key"])[len(self.place.prefix) :]
                if _is_ours(name):
                    yield Listed(name, str(item["ETag"]), int(item["Size"]), item["LastModified"].timestamp())
            if not page.get("IsTruncated"):
                return
            token = {"ContinuationToken": str(page["NextContinuationToken"])}

    def probe(self) -> None:
        """Make sure that the store honours create-only, for plain and for multipart objects. StoreError naming it when not."""
        for _ in range(2):
            try:
                self.put_new(_PROBE, _PROBE_TEXT)
            except AlreadyExists:
                break
        else:
            raise self._careless("put")
        try:
            self._upload(_PROBE, [lambda: _PROBE_TEXT], only_new=True)
        except AlreadyExists:
            return
        raise self._careless("completing a multipart upload")

    def sweep_uploads(self) -> int:
        """Abort the multipart uploads of processes of this machine that are dead; returns how many."""
        if self._journal is None:
            return 0
        swept = 0
        for note, name, upload in self._journal.orphans():
            with contextlib.suppress(StoreError):  # it may be gone already; whoever starts next tries again where not
                self._abort(name, upload)
                self._journal.forget(note)
                swept += 1
        return swept

    # ---- how

    def _again(self, call: Callable[[int], T], name: str) -> T:
        return self._patience.again(call, f"{self.place}/{name}")

    def _found(self, name: str, ask: Callable[[], Any]) -> Any:
        try:
            return ask()
        except failures() as error:
            answer = answer_of(error)
            if answer.status == 404 and answer.code != "NoSuchBucket":
                raise StoreError("there is no such object", name) from None
            raise

    def _put(self, name: str, data: bytes, *, only_new: bool) -> None:
        token = secrets.token_hex(16)
        arguments = {
            "Bucket": self.place.bucket, "Key": self.place.key(name), "Body": data, "ContentMD5": _md5(data),
            "Metadata": {"writer": token}, **({"IfNoneMatch": "*"} if only_new else {}),
        }  # fmt: skip
        self._create(name, token, lambda: self.client.put_object(**arguments))

    def _create(self, name: str, token: str, send: Callable[[], Any]) -> None:
        """Send a request that makes an object. One that failed may have been carried out all the same: its token tells."""

        def attempt(n: int) -> None:
            try:
                send()
            except failures() as error:
                answer = answer_of(error)
                lost = answer.status in (404, 412) and answer.code not in ("NoSuchBucket", "AccessDenied")
                if lost and n and self._writer(name) == token:
                    return
                if answer.status == 412:
                    raise AlreadyExists("this object exists already", name) from None
                raise

        self._again(attempt, name)

    def _writer(self, name: str) -> str:
        head = self.head(name)
        return str(head["Metadata"].get("writer", "")) if head else ""

    def _put_file(self, name: str, path: Path, *, only_new: bool) -> None:
        size = path.stat().st_size
        if size <= PART_BYTES:
            self._put(name, path.read_bytes(), only_new=only_new)
            return
        if only_new and self.exists(name):  # the usual conflict, without sending it all first
            raise AlreadyExists("this object exists already", name)
        length = max(PART_BYTES, -(-size // PARTS_MAX))
        parts = [_part(path, start, min(length, size - start)) for start in range(0, size, length)]
        self._upload(name, parts, only_new=only_new)

    def _upload(self, name: str, parts: Sequence[Callable[[], bytes]], *, only_new: bool) -> None:
        token, bucket, key = secrets.token_hex(16), self.place.bucket, self.place.key(name)
        made = self._again(
            lambda _: self.client.create_multipart_upload(Bucket=bucket, Key=key, Metadata={"writer": token}), name
        )
        upload = str(made["UploadId"])
        note = self._journal.remember(name, upload) if self._journal else None

        def send(number: int) -> dict[str, Any]:
            data = parts[number - 1]()
            sent = self._again(
                lambda _: self.client.upload_part(
                    Bucket=bucket, Key=key, UploadId=upload, PartNumber=number, Body=data, ContentMD5=_md5(data)
                ),
                name,
            )
            return {"PartNumber": number, "ETag": sent["ETag"]}

        try:
            with ThreadPoolExecutor(PARTS_AT_ONCE) as pool:
                sent = list(pool.map(send, range(1, len(parts) + 1)))
            condition = {"IfNoneMatch": "*"} if only_new else {}
            self._create(
                name, token,
                lambda: self.client.complete_multipart_upload(
                    Bucket=bucket, Key=key, UploadId=upload, MultipartUpload={"Parts": sent}, **condition
                ),
            )  # fmt: skip
        except BaseException:
            with contextlib.suppress(StoreError):  # the error at hand says more; the journal keeps what could not be aborted
                self._abort(name, upload)
                if note is not None and self._journal:
                    self._journal.forget(note)
            raise
        if note is not None and self._journal:
            self._journal.forget(note)

    def _abort(self, name: str, upload: str) -> None:
        def ask(_: int) -> None:
            try:
                self.client.abort_multipart_upload(Bucket=self.place.bucket, Key=self.place.key(name), UploadId=upload)
            except failures() as error:
                if answer_of(error).code != "NoSuchUpload":
                    raise

        self._again(ask, name)

    def _careless(self, what: str) -> StoreError:
        where = self.place.endpoint or str(self.place)
        return StoreError(
            f"this store ignores If-None-Match ({what} replaced an object that was there), so two writers could destroy each other's work",
            where,
            "use a store with conditional writes (AWS S3 and most others have them since 2025), or a folder",
        )


def _part(path: Path, start: int, length: int) -> Callable[[], bytes]:
    def read() -> bytes:
        with path.open("rb") as file:
            file.seek(start)
            return file.read(length)

    return read


def _md5(data: bytes) -> str:
    return base64.b64encode(hashlib.md5(data, usedforsecurity=False).digest()).decode()


def _is_ours(name: str) -> bool:
    try:
        check_name(name)
    except StoreError:
        return False
    return True

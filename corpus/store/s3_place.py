"""Where on S3 a corpus lies, and how to speak to it. boto3 is imported only when something is asked.

Credentials come from boto3's own chain (environment, shared files, instance roles) and are never read, kept or shown
by us. One request is one try: waiting and trying again is decided in one place, `s3_retry`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Self

from corpus.errors import StoreError, UsageError
from corpus.store.objects import check_name

SCHEME = "s3://"
INSTALL = "pip install 'corpus[s3]'"
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]\Z")
_ADDRESS = re.compile(r"\d+\.\d+\.\d+\.\d+\Z")
_PREFIX_MAX = 100
"""Characters of prefix: S3 allows 1024 bytes of key, and an object's name may need 900 of them."""
CONNECT_S, READ_S = 10.0, 60.0
CONNECTIONS = 16


@dataclass(frozen=True, slots=True)
class S3Place:
    """`prefix` is empty or ends in a slash. `endpoint` is the URL of a store that is not AWS; `region` of one that asks for it."""

    bucket: str
    prefix: str = ""
    endpoint: str | None = None
    region: str | None = None

    @classmethod
    def parse(cls, root: str, endpoint: str | None = None, region: str | None = None) -> Self:
        """`s3://bucket/prefix`. Raises UsageError for what cannot be the name of a bucket or of objects."""
        bucket, _, prefix = root.removeprefix(SCHEME).partition("/")
        if not _BUCKET.match(bucket) or ".." in bucket or _ADDRESS.match(bucket):
            hint = "3 to 63 lower-case letters, digits, '-' and '.': s3://bucket/prefix"
            raise UsageError(f"not the name of a bucket: {bucket[:80]!r}", root[:200], hint)
        prefix = prefix.strip("/")
        if prefix:
            try:
                check_name(prefix)
            except StoreError as error:
                raise UsageError(error.what, root[:200], "letters, digits and '-' between slashes: s3://bucket/prefix") from None
            if len(prefix) > _PREFIX_MAX:
                raise UsageError(f"a prefix of {len(prefix)} characters is too long", root[:200], f"at most {_PREFIX_MAX}")
        return cls(bucket, f"{prefix}/" if prefix else "", endpoint, region)

    def key(self, name: str) -> str:
        """The key of a checked object name."""
        return self.prefix + check_name(name)

    def __str__(self) -> str:
        return f"{SCHEME}{self.bucket}/{self.prefix}".rstrip("/")


def has_boto3() -> bool:
    """Whether the client library is installed; does not import it."""
    from importlib.util import find_spec

    return find_spec("boto3") is not None


def connect(place: S3Place) -> Any:
    """A client for one place: thread-safe, bounded in time and connections, without retries of its own."""
    if not has_boto3():
        raise UsageError("S3 needs the package boto3", str(place), INSTALL)
    import boto3
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError

    from corpus.store.s3_retry import explained

    settings = Config(
        connect_timeout=CONNECT_S,
        read_timeout=READ_S,
        retries={"total_max_attempts": 1},
        max_pool_connections=CONNECTIONS,
        # we send Content-MD5, which every store checks; trailing checksums are refused by some
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
        user_agent_extra="corpus",
    )
    try:
        region = place.region or (boto3.session.Session().region_name or "us-east-1")
        return boto3.session.Session().client("s3", endpoint_url=place.endpoint, region_name=region, config=settings)
    except (BotoCoreError, ValueError) as error:
        raise explained(error, str(place)) from None

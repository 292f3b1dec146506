"""What S3 answers when it does not do what was asked: which answers are worth another try, and all of them in plain words.

An answer is retried with growing, jittered waits inside one patience; what is left after that is a `TryLater`, and every
other refusal a `StoreError` that says what an operator can do. No message quotes a header, a key or a signature.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from corpus.errors import StoreError, TryLater

T = TypeVar("T")
FIRST_WAIT_S, LONGEST_WAIT_S = 0.2, 10.0
PATIENCE_S = 60.0
"""How long one operation is tried before the caller hears of it."""
_AGAIN_CODES = frozenset(
    {
        "SlowDown", "Throttling", "ThrottlingException", "RequestLimitExceeded", "TooManyRequests", "RequestTimeout", "RequestTimeoutException",
        "InternalError", "ServiceUnavailable", "OperationAborted", "ConditionalRequestConflict", "BadDigest", "IncompleteBody",
    }
)  # fmt: skip
_RERUN = "run the same command again: what was acknowledged is kept"
_WORDS: dict[str, tuple[str, str]] = {
    "InvalidAccessKeyId": ("the store does not know this access key", "check the credentials (AWS_PROFILE, AWS_ACCESS_KEY_ID …)"),
    "SignatureDoesNotMatch": ("the store does not accept the secret key", "check AWS_SECRET_ACCESS_KEY and store.s3_region"),
    "ExpiredToken": ("the credentials have expired", f"log in again, then {_RERUN}"),
    "InvalidToken": ("the session token is not valid", f"log in again, then {_RERUN}"),
    "RequestTimeTooSkewed": ("this machine's clock is too far off for the store", "set the clock (NTP), then run again"),
    "NoSuchBucket": ("there is no such bucket", "create it, or correct store.root"),
    "PermanentRedirect": ("the bucket lies in another region", "set store.s3_region"),
    "AuthorizationHeaderMalformed": ("the bucket lies in another region", "set store.s3_region"),
    "IllegalLocationConstraintException": ("the bucket lies in another region", "set store.s3_region"),
    "QuotaExceeded": ("the bucket is full", f"raise its quota, then {_RERUN}"),
    "NoCredentialsError": ("there are no credentials", "set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"),
    "PartialCredentialsError": ("the credentials are not complete", "set both AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"),
    "ProfileNotFound": ("there is no such AWS profile", "correct AWS_PROFILE"),
    "TokenRetrievalError": ("the login has expired", "run aws sso login, then the same command again"),
}
"""Error codes of S3 and names of boto3's exceptions: what it means, and what to do."""
_STATUS: dict[int, tuple[str, str]] = {
    401: ("the store does not accept these credentials", "check the credentials (AWS_PROFILE, AWS_ACCESS_KEY_ID …)"),
    403: ("access is denied", "the credentials need to list, get, put and delete under store.root"),
    404: ("there is no such object", "run corpus verify"),
    409: ("somebody else was writing the same object", _RERUN),
    412: ("the object was changed meanwhile", _RERUN),
    429: ("the store asks us to slow down", _RERUN),
}


@dataclass(frozen=True, slots=True)
class Answer:
    """What of an error matters. `status` is 0 where no answer came."""

    code: str
    status: int

    @property
    def again(self) -> bool:
        """Whether the same request may succeed a moment later."""
        return self.status == 0 or self.status in (409, 429) or self.status >= 500 or self.code in _AGAIN_CODES


def failures() -> tuple[type[BaseException], ...]:
    """What a request may raise: refusals, and connections that broke, also in the middle of a body."""
    from botocore.exceptions import BotoCoreError, ClientError
    from urllib3.exceptions import HTTPError

    return (ClientError, BotoCoreError, HTTPError, ConnectionError, TimeoutError)


def answer_of(error: BaseException) -> Answer:
    """The code and HTTP status of a refusal; the exception's name, and status 0 or 400, where no answer came."""
    response: dict[str, Any] = getattr(error, "response", None) or {}
    if response:
        status = int(response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
        return Answer(str(response.get("Error", {}).get("Code") or ""), status or 500)
    name = type(error).__name__
    hopeless = name in _WORDS or name.endswith(("ValidationError", "NotFound", "EndpointError", "CredentialsError"))
    return Answer(name, 400 if hopeless else 0)


def explained(error: BaseException, where: str) -> StoreError:
    """The error in plain words: `TryLater` when time may mend it, else `StoreError`."""
    answer = answer_of(error)
    if answer.code in _WORDS:
        what, hint = _WORDS[answer.code]
    elif answer.status in _STATUS:
        what, hint = _STATUS[answer.status]
    elif answer.status == 0:
        what, hint = (
            f"the store cannot be reached or broke off ({answer.code})",
            f"check store.s3_endpoint and the network, then {_RERUN}",
        )
    elif answer.status >= 500:
        what, hint = f"the store has a fault of its own (HTTP {answer.status} {answer.code})", _RERUN
    else:
        what, hint = f"the store refused (HTTP {answer.status} {answer.code})", "check store.root and the bucket's policy"
    return TryLater(what, where, hint) if answer.again else StoreError(what, where, hint)


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to go on trying. Times in seconds; the clock and the waiting are arguments so that tests need neither."""

    total_s: float = PATIENCE_S
    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    def again(self, call: Callable[[int], T], where: str) -> T:
        """The result of `call(n)`, n counting tries from 0, tried while its failures may pass. Raises what `explained` makes of the last one."""
        until = self.monotonic() + self.total_s
        for n in range(1_000_000):
            try:
                return call(n)
            except failures() as error:
                wait_s = min(FIRST_WAIT_S * 2 ** min(n, 10), LONGEST_WAIT_S) * random.uniform(0.5, 1.0)
                if not answer_of(error).again or self.monotonic() + wait_s > until:
                    raise explained(error, where) from None
                self.sleep(wait_s)
        raise AssertionError("patience ends long before a million tries")

"""RSL 1.0 licence documents: what they permit, prohibit or charge for, read from hostile XML.

We never acquire a licence: free permission to train is a yes, every price, server or reporting duty is a no, and so
is a document that cannot be had or is not valid (RSL 4.3). The parser refuses document types and entities, bounds
size, depth and number of elements, and resolves nothing.
"""

from __future__ import annotations

from typing import NamedTuple
from xml.parsers import expat

from corpus.optout.evidence import Origin, stated
from corpus.optout.filestate import NOT_RSL, FileState
from corpus.optout.lines import CAP_BYTES
from corpus.optout.scoped import Scope, statement
from corpus.url.host import authority_of

NAMESPACE = "https://rslstandard.org/rsl"
DEPTH_MAX, ELEMENTS_MAX, TEXT_MAX = 32, 20_000, 4_096
_TRAINING_USES = frozenset({"all", "ai-all", "ai-train", "train-ai", "ai"})
"""Usage tokens that include training: RSL 1.0's, and `train-ai` of draft 0.9."""
_PROHIBITING_USES = _TRAINING_USES | {"train-genai", "genai-train", "ai-use", "training"}
"""Beside them, what a refusal evidently means in draft 0.9."""
_FREE = frozenset({"free", "attribution"})


class Content(NamedTuple):
    """One `content` element: its URL pattern, and what its licences come to (a value of the decision table; empty: nothing)."""

    url: str
    value: str
    raw: str


class RslDocument(NamedTuple):
    """`fault` is empty for a valid document, `not-rsl` for something else entirely, else why it is invalid."""

    contents: tuple[Content, ...]
    fault: str


class _Refused(Exception):
    """The document asks for something that is never done, or is too large."""


def parse_rsl(body: bytes) -> RslDocument:
    """A document's licences. Never raises; what is not well-formed, or is not RSL, says so in `fault`."""
    if len(body) > CAP_BYTES:
        return RslDocument((), "too large")
    reader = _Reader()
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = reader.start, reader.end, reader.text
    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = reader.refuse
    try:
        parser.Parse(body, True)
    except _Refused as refused:
        return RslDocument((), str(refused))
    except (expat.ExpatError, ValueError, LookupError) as error:
        named = reader.root or b"<rsl" in body or NAMESPACE.encode() in body
        return RslDocument((), f"not well-formed: {error}" if named else NOT_RSL)
    if reader.root != "rsl":
        return RslDocument((), NOT_RSL)
    return RslDocument(tuple(reader.contents), "")


class _Reader:
    """Folds the event stream into contents; holds one content and one licence at a time."""

    def __init__(self) -> None:
        self.root = ""
        self.contents: list[Content] = []
        self._path: list[str] = []
        self._count = 0
        self._text: list[str] = []
        self._kind = ""
        self._url = ""
        self._serves = False
        self._licences: list[str] = []
        self._licence = _Licence()

    def refuse(self, *_: object) -> None:
        raise _Refused("document types and entities are refused")

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        namespace, _, name = tag.rpartition(" ")
        self._count += 1
        if self._count > ELEMENTS_MAX or len(self._path) >= DEPTH_MAX:
            raise _Refused("too many elements")
        if not self._path:
            self.root = name if namespace in {NAMESPACE, ""} else tag
        self._path.append(name)
        self._text = []
        if name == "content":
            self._url = attributes.get("url", "")[:TEXT_MAX]
            self._serves = bool(attributes.get("server")) or attributes.get("encrypted", "").lower() == "true"
            self._licences = []
        elif name == "license":
            self._licence = _Licence(paid=self._serves)
        elif name in {"permits", "prohibits"}:
            self._kind = attributes.get("type", "usage").lower()
        elif name == "payment":
            self._licence.pay(attributes.get("type", "").lower())
        elif name == "reporting" or (name == "amount" and "payment" not in self._path):
            self._licence.paid = True

    def text(self, data: str) -> None:
        if sum(map(len, self._text)) < TEXT_MAX:
            self._text.append(data[:TEXT_MAX])

    def end(self, tag: str) -> None:
        name = self._path.pop()
        words = frozenset("".join(self._text).lower().replace(",", " ").split())
        self._text = []
        if name == "permits":
            self._licence.permit(self._kind, words)
        elif name == "prohibits":
            self._licence.prohibit(self._kind, words)
        elif name == "amount" and words and words != {"0"}:
            self._licence.paid = True
        elif name == "license" and "content" in self._path:
            self._licences.append(self._licence.value())
        elif name == "content":
            value = _of_alternatives(self._licences)
            self.contents.append(Content(self._url, value, f'<content url="{self._url}"> {value}'.strip()))


class _Licence:
    """What one licence element says about free training of a general-purpose corpus."""

    def __init__(self, *, paid: bool = False) -> None:
        self.paid = paid
        self._credit = self._prohibited = self._limited = False
        self._permits: bool | None = None

    def pay(self, kind: str) -> None:
        self._credit = self._credit or kind == "attribution"
        self.paid = self.paid or kind not in _FREE

    def permit(self, kind: str, words: frozenset[str]) -> None:
        if kind == "usage":
            self._permits = bool(self._permits) or bool(words & _TRAINING_USES)
        elif kind != "user" or not words & {"all", "commercial"}:
            self._limited = True  # permitted to some users or places only: not to everyone who may read a release

    def prohibit(self, kind: str, words: frozenset[str]) -> None:
        if kind == "usage":
            self._prohibited = self._prohibited or bool(words & _PROHIBITING_USES)
        else:
            self._limited = True

    def value(self) -> str:
        if self._prohibited:
            return "prohibited"
        if self._permits is False or self._limited:
            return "not-permitted"
        if self.paid:
            return "paid"
        if self._permits is None:
            return ""
        return "attribution" if self._credit else "free"


def _of_alternatives(licences: list[str]) -> str:
    """Licences beside each other are a choice, but a prohibition in any of them is a prohibition."""
    for value in ("prohibited", "free", "attribution", "paid", "not-permitted"):
        if value in licences:
            return value
    return ""


class Licence(NamedTuple):
    """One advertised document, read: either one answer for every URL (`value` of the table), or contents by path."""

    origin: Origin
    value: str
    raw: str
    contents: tuple[tuple[str, str, str], ...]
    """(path pattern, value, raw) of the contents that speak about this authority."""


def read_licence(state: FileState | None, url: str, authority: str) -> Licence:
    """The licence behind an advertised URL, for pages of `authority` (`authority_of`); None: it has not been fetched.

    What cannot be read now is unread; what is not there is no licence."""
    origin = Origin(url) if state is None else Origin(state.url or url, state.digest, state.read_at)
    if state is None:
        return Licence(origin, "unread", url, ())
    if state.outcome == "unreachable":
        return Licence(origin, "unread", state.detail or url, ())  # [P] a server in trouble has not said no yet: asked again
    if state.outcome != "ok":
        return Licence(origin, "invalid", state.detail or state.outcome, ())
    document = parse_rsl(state.body)
    if NOT_RSL in {state.detail, document.fault}:
        return Licence(origin, "not-rsl", url, ())
    if document.fault:
        return Licence(origin, "invalid", document.fault, ())
    placed = [(place_of(item.url, authority), item) for item in document.contents if item.value]
    return Licence(origin, "", "", tuple((path, item.value, item.raw) for path, item in placed if path is not None))


def place_of(url: str, authority: str) -> str | None:
    """The path pattern of a content element (empty: everything); None where it speaks about another site."""
    _, scheme, rest = url.strip().partition("://")
    if not scheme:
        path = url.strip()
        return path if not path or path.startswith(("/", "*")) else "/" + path
    slash = rest.find("/")
    path = rest[slash:] if slash >= 0 else ""
    return path if not authority or authority_of(url) == authority else None


def licence_scope(licence: Licence) -> Scope:
    """A licence, compiled."""
    if licence.value:
        return Scope([statement("", stated("rsl", licence.value, licence.origin, raw=licence.raw))])
    return Scope([statement(path, stated("rsl", value, licence.origin, raw=raw)) for path, value, raw in licence.contents])

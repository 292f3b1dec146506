"""One page, parsed once: links, meta elements, link relations, title, languages, visible text. Never raises.

Crawling and filtering read the same tree. Every property is lazy and cached, none changes the tree, all are bounded:
a body past 10 MiB is cut, markup that would cost a parser more than about half a second is flattened first
(`corpus.page.flatten`), and a page the parser refuses is an empty page with its `fault` set.
What `nofollow` or a robots meta mean for us is not decided here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from selectolax.lexbor import LexborDocumentOptions, LexborHTMLParser, LexborNode, SelectolaxError

from corpus.page.charset import decode
from corpus.page.flatten import flatten, is_heavy
from corpus.url.canonical import canonical_links, canonical_url, fetch_url
from corpus.url.host import host_of

MAX_BODY = 10 * 2**20
MAX_LINKS = 10_000
_MAX_ANCHORS = 100_000
_MAX_ELEMENTS = 5_000
_MAX_CONTENT = 16_384
_MAX_TITLE = 1_000
_SHORT_NOSCRIPT = 200
"""Characters; a longer `noscript` holds the page's content and not a request to enable scripts."""

_READ = {
    "a": _MAX_ANCHORS, "area": _MAX_ANCHORS, "base": _MAX_ELEMENTS, "link": _MAX_ELEMENTS, "meta": _MAX_ELEMENTS, "noscript": 1,
}  # fmt: skip
"""Elements whose attributes are read, and how many of each."""
_SELECTOR = ",".join(_READ)
_MARKUP_TYPES = frozenset({"", "text/html", "application/xhtml+xml", "application/xml", "text/xml", "application/octet-stream"})
_UNSEEN = "script,style,template,iframe,noembed,noframes"
_HIDDEN = 'body [hidden],body [style*="display:none" i],body [style*="display: none" i]'
_FOLLOWED_RELATIONS = ("next", "prev", "alternate")


@dataclass(frozen=True, slots=True)
class Link:
    """One place the page leads to. `nofollow` when every element that leads there says so."""

    url: str
    """Canonical: the key."""
    found: str
    """Absolute, as found: what would be asked for."""
    nofollow: bool = False


@dataclass(frozen=True, slots=True)
class LinkElement:
    """A `<link>` as written: `rel` and `type` in lower case, tokens of `rel` apart by one space, `href` unresolved."""

    rel: str
    type: str
    href: str


def cut(nodes: Sequence[LexborNode]) -> None:
    """Take nodes (in the order of their document, as selections are) out of it and free them, each once and the inner before the outer:
    what is inside a node goes with it, and a node that is gone must not be touched."""
    once = {node.mem_id: node for node in nodes}
    for node in reversed(once.values()):
        node.decompose()


@dataclass(frozen=True)
class Page:
    """A decoded page and its tree. `tree` is None for plain text, other types, and pages with a `fault`."""

    url: str
    """Where it was found; links resolve against it."""
    text: str
    """The whole decoded source."""
    charset: str
    charset_source: str
    tree: LexborHTMLParser | None
    fault: str = ""
    truncated: bool = False
    flattened: bool = False
    """Its structure was too costly and is gone; links, metas, title and text are complete."""

    @cached_property
    def base(self) -> str:
        """What relative links resolve against: the first `<base href>` that is an http(s) URL, else the page's URL."""
        for attributes in self._elements["base"]:
            if attributes.get("href"):
                return fetch_url(attributes["href"] or "", self.url) or self.url
        return self.url

    @cached_property
    def links(self) -> list[Link]:
        """http(s) links of `a`, `area`, and `link rel=next|prev|alternate hreflang`, each canonical URL once, in order."""
        return self._resolved(self._spoken())

    def links_of(self, chosen: Callable[[str], bool]) -> list[Link]:
        """`links`, but those alone whose href as written is `chosen`: only these are resolved, which is what costs. All of them on
        a page of so many that `MAX_LINKS` may cut."""
        pairs = self._spoken()
        if len(pairs) > MAX_LINKS:
            return self.links
        return self._resolved([pair for pair in pairs if chosen(pair[0])])

    def _spoken(self) -> list[tuple[str, bool]]:
        """(href as written, nofollow) of every element that leads somewhere."""
        anchors = self._elements["a"] + self._elements["area"]
        spoken = [(attributes.get("href"), attributes.get("rel")) for attributes in anchors]
        pairs = [(href, rel is not None and "nofollow" in rel.lower().split()) for href, rel in spoken if href is not None]
        return pairs + [(href, False) for href in self._relations]

    def _resolved(self, pairs: list[tuple[str, bool]]) -> list[Link]:
        found = canonical_links((href for href, _ in pairs), self.base)[:MAX_LINKS]
        if not any(nofollow for _, nofollow in pairs):
            return [Link(url, as_found) for url, as_found in found]
        followed = {url for url, _ in canonical_links((href for href, nofollow in pairs if not nofollow), self.base)}
        return [Link(url, as_found, url not in followed) for url, as_found in found]

    @cached_property
    def metas(self) -> list[tuple[str, str]]:
        """(key, content) of every real meta element, in head or body. The key is the lower-case `name`, or
        `property:…` or `http-equiv:…`; an element with several of them stands once under each."""
        found = []
        for attributes in self._elements["meta"]:
            content = (attributes.get("content") or "")[:_MAX_CONTENT]
            for attribute, prefix in (("name", ""), ("property", "property:"), ("http-equiv", "http-equiv:")):
                key = (attributes.get(attribute) or "").strip().lower()
                if key:
                    found.append((prefix + key, content))
        return found

    @cached_property
    def link_elements(self) -> list[LinkElement]:
        """Every `<link>` with a rel and an href."""
        found = []
        for attributes in self._elements["link"]:
            rel, href = attributes.get("rel"), attributes.get("href")
            if rel and href is not None:
                kind = (attributes.get("type") or "").strip().lower()
                found.append(LinkElement(" ".join(rel.lower().split()), kind, href))
        return found

    @cached_property
    def canonical(self) -> str | None:
        """The canonical URL the page names for itself (`rel=canonical`), when it lies on the page's own host."""
        for link in self.link_elements:
            if "canonical" in link.rel.split():
                url = canonical_url(link.href, self.base)
                return url if url is not None and host_of(url) == host_of(self.url) else None
        return None

    @cached_property
    def title(self) -> str:
        """The title, white space folded; empty when it has none."""
        if self.tree is None:
            return ""
        node = self.tree.css_first("head > title") or self.tree.css_first("body title:not(svg title)")
        return "" if node is None else " ".join(node.text()[: 8 * _MAX_TITLE].split())[:_MAX_TITLE]

    @cached_property
    def language_attributes(self) -> list[str]:
        """What the page says of its language, as written: `html lang`, `xml:lang`, meta `content-language`."""
        root = None if self.tree is None else self.tree.root
        attributes = {} if root is None else root.attributes
        said = [attributes.get("lang"), attributes.get("xml:lang")]
        said += [content for key, content in self.metas if key in {"http-equiv:content-language", "content-language", "language"}]
        return [value.strip() for value in said if value and value.strip()]

    @cached_property
    def visible_text(self) -> str:
        """The text a reader sees: no scripts, styles, templates, frames, short `noscript`, hidden elements. Every piece of
        text stands apart, so markup inside a word parts it."""
        if self.tree is None:
            return "" if self.fault else self.text
        return self._stripped(self.tree.clone())

    def last_text(self) -> str:
        """`visible_text`, taken from the tree itself and not from a copy of it, which is a tenth of the cost of reading a page. What
        elements say was read before: links, metas, link elements. Title, languages and tree must not be asked for any more."""
        if self.tree is None or "visible_text" in self.__dict__:
            return self.visible_text
        _ = self._elements
        text = self.__dict__["visible_text"] = self._stripped(self.tree)
        return text

    def _stripped(self, tree: LexborHTMLParser) -> str:
        """The text of a tree once what nobody sees is cut out of it."""
        cut(tree.css(f"{_UNSEEN},{_HIDDEN}"))
        if self._elements["noscript"]:
            cut([node for node in tree.tags("noscript") if len(node.text()) < _SHORT_NOSCRIPT])
        body = tree.body
        return "" if body is None else body.text(separator=" ")

    @property
    def _relations(self) -> list[str]:
        """hrefs of the link elements that lead on: paging, and the page in other languages."""
        found = []
        for attributes in self._elements["link"]:
            rels, href = (attributes.get("rel") or "").lower().split(), attributes.get("href")
            other_language = "alternate" in rels and attributes.get("hreflang")
            if href and "stylesheet" not in rels and ("next" in rels or "prev" in rels or other_language):
                found.append(href)
        return found

    @cached_property
    def _elements(self) -> dict[str, list[dict[str, str | None]]]:
        """The attributes of the elements that are read, by tag and in order, found in one walk through the tree."""
        found: dict[str, list[dict[str, str | None]]] = {tag: [] for tag in _READ}
        if self.tree is not None:
            nodes: list[LexborNode] = self.tree.css(_SELECTOR)
            for node in nodes:
                tag = node.tag or ""
                same = found.get(tag)
                if same is not None and len(same) < _READ[tag]:
                    same.append(node.attributes)
        return found


def parse(body: bytes, content_type: str | None = None, url: str = "") -> Page:
    """The page of a content-decoded body. `content_type` is the header's value; a missing or unknown type reads as HTML."""
    truncated = len(body) > MAX_BODY
    decoded = decode(body[:MAX_BODY] if truncated else body, content_type)
    text = decoded.text
    if not is_markup(content_type):
        return Page(url, text, decoded.charset, decoded.source, None, truncated=truncated)
    heavy = is_heavy(text)
    tree, fault = _tree(flatten(text) if heavy else text)
    return Page(url, text, decoded.charset, decoded.source, tree, fault, truncated, heavy)


def is_markup(content_type: str | None) -> bool:
    """Is a body of this Content-Type read as HTML? Other named types (text/plain, JSON, …) are text without a tree."""
    essence = (content_type or "").partition(";")[0].strip().lower()
    return essence in _MARKUP_TYPES or "/" not in essence


def _tree(html: str) -> tuple[LexborHTMLParser | None, str]:
    try:
        return LexborHTMLParser(html, options=LexborDocumentOptions.WO_EVENTS), ""
    except (SelectolaxError, ValueError, RuntimeError, MemoryError) as error:
        return None, f"the HTML parser refused it: {error}"

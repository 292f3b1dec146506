"""Is this answer a bot challenge or a wall instead of what was asked for? Then it says nothing about the site's will.

Headers settle it for any answer; marks in the body are looked for only where the caller expected a statement file or
the status is an error, because an ordinary page may quote them. A challenge is never solved.
"""

from __future__ import annotations

from collections.abc import Iterable

Headers = Iterable[tuple[str, str]]
_HEAD_BYTES = 65_536
_MARKS = (
    b"_cf_chl_opt", b"cf-browser-verification", b"/cdn-cgi/challenge-platform/h/", b"awswafcookiedomainlist", b"gokuprops", b"_incapsula_resource",
    b"incapsula incident id", b"px-captcha", b"ddos-guard", b"sucuri_cloudproxy_js", b"geo.captcha-delivery.com", b"<title>just a moment...",
    b"<title>attention required! | cloudflare",
)  # fmt: skip


def challenged(headers: Headers) -> str:
    """The header (`name: value`) by which a known wall says that it stands in the way; empty without one."""
    for name, value in headers:
        low, word = name.lower(), value.strip().lower()
        if (low == "cf-mitigated" and word == "challenge") or (low == "x-amzn-waf-action" and word in {"challenge", "captcha"}):
            return f"{name}: {value.strip()}"
    return ""


def challenge_page(body: bytes) -> bool:
    """Whether a body, where a statement file or an error page was expected, is a known wall's page."""
    head = body[:_HEAD_BYTES].lower()
    return b"<" in head and any(mark in head for mark in _MARKS)


def looks_like_markup(body: bytes) -> bool:
    """Whether a body starts as HTML or XML does."""
    head = body[:1_024].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    return head.startswith((b"<!doctype", b"<html", b"<head", b"<body", b"<?xml", b"<!--", b"<rss", b"<svg"))

"""Query parameters and path parameters that name a visit, not a resource.

Only names that their vendors document and that nobody else uses are in the table: a name that some site could use
for its content (`ref`, `id`, `source`, `spm`) stays, since a key must never fold two resources into one; `sid` and its
like are dropped where what stands there has the shape of a session id and of nothing else.
Removing is done on the key only; what is requested keeps every parameter.
"""

from __future__ import annotations

import re

TRACKING_PREFIXES = ("utm_", "aspsessionid")
"""Families with open ends: Urchin/Google campaign tags, and classic ASP's cookies moved into the query."""

_VENDORS = {
    "Google Ads, Analytics, merchant listings": "gclid gclsrc dclid gbraid wbraid gad_source gad_campaignid _ga _gl srsltid",
    "Meta": "fbclid fb_action_ids fb_action_types igshid igsh",
    "other networks": "msclkid yclid ysclid _openstat twclid ttclid li_fat_id rdt_cid epik sccid",
    "Mailchimp, Marketo, Klaviyo": "mc_cid mc_eid mkt_tok _ke",
    "HubSpot": "_hsenc _hsmi __hstc __hssc __hsfp hsctatracking",
    "HubSpot Ads": "hsa_acc hsa_cam hsa_grp hsa_ad hsa_src hsa_tgt hsa_kw hsa_mt hsa_net hsa_ver",
    "Vero, Omeda, MailerLite": "vero_id vero_conv oly_anon_id oly_enc_id ml_subscriber ml_subscriber_hash",
    "affiliates": "irclickid zanpid wickedid",
    "Matomo": "mtm_campaign mtm_keyword mtm_kwd mtm_source mtm_medium mtm_content mtm_cid mtm_group mtm_placement",
    "Piwik": "pk_campaign pk_keyword pk_kwd pk_source pk_medium pk_content pk_cid",
    "sessions: PHP, Java servlets": "phpsessid jsessionid",
}
TRACKING_PARAMETERS = frozenset(name for names in _VENDORS.values() for name in names.split())
"""Names, lower-case, dropped with their values wherever they stand in the query."""

SESSION_NAMES = frozenset(
    {"sid", "s", "session", "sessid", "sessionid", "session_id", "oscsid", "zenid", "cfid", "cftoken", "sess"}
)
"""Names that forums and shops give their session ids, and that others give to something else: what stands there decides."""
_SESSION_VALUE = re.compile(r"[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-v]{26}", re.IGNORECASE)
"""An MD5 or SHA-1 in hexadecimal, or PHP's 26 characters of five bits: no number, no date and no word."""

_PATH_SESSION = re.compile(r";jsessionid(?:=[^;/]*+)?(?=[;/]|\Z)", re.IGNORECASE)
_DOTS = re.compile(r"\.{1,2}")
_ASPNET_SESSION = re.compile(r"(?<=/)(?:\([AFS]\([0-9a-z]{24}\)\))/")
"""ASP.NET's cookieless session: one whole path segment of a fixed shape."""


def is_tracking(name: str) -> bool:
    """Does a query parameter of this name track the visitor? `name` as it stands, escapes of plain letters decoded."""
    low = name.lower().removeprefix("amp;")  # a link written with `&amp;amp;` names its parameter so
    return low in TRACKING_PARAMETERS or low.startswith(TRACKING_PREFIXES)


def is_session(name: str, value: str) -> bool:
    """Does a query parameter hold a session id under one of the names that are used for it?"""
    if name.lower().removeprefix("amp;") not in SESSION_NAMES:
        return False
    return bool(_SESSION_VALUE.fullmatch(value)) and any(ch.isdigit() for ch in value) and not value.isdigit()


def drop_tracking(query: str) -> str | None:
    """The query (without `?`) less its tracking parameters and session ids; None when nothing is left and the `?` goes too.

    Order, empty parts and the spelling of what stays are kept; a query without tracking parameters comes back whole.
    """
    parts = query.split("&")
    kept = [part for part in parts if not _names_a_visit(part)]
    if len(kept) == len(parts):
        return query
    return "&".join(kept) or None


def _names_a_visit(part: str) -> bool:
    name, _, value = part.partition("=")
    return is_tracking(name) or is_session(name, value)


def drop_session(path: str) -> str:
    """The path less `;jsessionid=…` and ASP.NET session segments.

    A segment that would become `.` or `..` is left alone: it would be resolved away, and mean another resource.
    """
    if ";" in path:
        path = "/".join(_segment_without_session(segment) for segment in path.split("/"))
    return _ASPNET_SESSION.sub("", path) if "(" in path else path


def _segment_without_session(segment: str) -> str:
    kept = _PATH_SESSION.sub("", segment)
    return segment if _DOTS.fullmatch(kept) else kept

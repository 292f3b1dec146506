"""The consent log and the control log under audit: every object whole, every body what its digest says, every watermark met."""

from __future__ import annotations

import hashlib
import json

from corpus.app.frontier_files import read_all
from corpus.app.project import Project
from corpus.app.snapshot import Snapshot
from corpus.app.verify_faults import Findings, Kind
from corpus.errors import StoreError
from corpus.store.commits import canonical_json
from corpus.store.consent_log import AuthorityRead, parse_entry

_LOG, _FILES, _POLICIES = "consent/log/", "consent/files/", "consent/policies/"
_AUTHORITIES = "SELECT DISTINCT digest FROM authority WHERE digest <> ''"


def check_consent(project: Project, snapshots: dict[str, Snapshot], findings: Findings) -> None:
    """Objects against every snapshot's watermark, entries against the bodies they name, bodies against their names."""
    digests, needed = {}, set()
    for name in project.objects.list(_LOG):
        data = project.objects.get(name)
        digests[name] = hashlib.sha256(data).hexdigest()
        findings.count("consent_objects")
        needed |= _entries(name, data, findings)
    for digest, snapshot in sorted(snapshots.items()):
        for name, expected in snapshot.facts["consent"]:
            if name not in digests:
                findings.add(Kind.CONSENT, name, f"snapshot {digest} was decided by it, and it is not there")
            elif digests[name] != expected:
                findings.add(Kind.CONSENT, name, f"it has changed since snapshot {digest} was decided by it")
    bodies = set()
    for name in project.objects.list(_FILES):
        bodies.add(name.removeprefix(_FILES))
        findings.count("consent_files")
        if hashlib.sha256(project.objects.get(name)).hexdigest() != name.removeprefix(_FILES):
            findings.add(Kind.CONSENT, name, "the file is not what its digest says")
    for digest in sorted(needed - bodies):
        findings.add(Kind.CONSENT, _FILES + digest, "an entry of the log names this file, and it is not there")
    _policies(project, findings)
    try:
        held = {str(row[0]) for row in read_all(project.layout, _AUTHORITIES)}
    except StoreError:
        held = set()  # the damaged partition file has a fault of its own
    for digest in sorted(held - bodies - needed):
        findings.add(Kind.CONSENT, _FILES + digest, "the frontier decides by this file, and it is not there")


def _policies(project: Project, findings: Findings) -> None:
    """What decided then, under the version that its own content gives."""
    for name in project.objects.list(_POLICIES):
        findings.count("consent_policies")
        data = project.objects.get(name)
        try:
            value = json.loads(data)
            version = value.pop("version")
            digest = hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()  # as `optout.policy` digests it
            whole = (
                canonical_json({"version": version, **value}) == data
                and name == f"{_POLICIES}{digest}.json"
                and version == digest
            )
        except (ValueError, TypeError, AttributeError, KeyError, StoreError):
            whole = False
        if not whole:
            findings.add(Kind.CONSENT, name, "the policy is not what its version says")


def _entries(name: str, data: bytes, findings: Findings) -> set[str]:
    """Digests of the bodies that the entries of one object name; a fault for each line that is none."""
    needed = set()
    if not data.endswith(b"\n"):
        findings.add(Kind.CONSENT, name, "its last line is cut")
    at = 0
    for line in data.splitlines(keepends=True):
        try:
            entry = parse_entry(json.loads(line))
            if isinstance(entry, AuthorityRead) and entry.digest:
                needed.add(entry.digest)
        except (ValueError, AttributeError, TypeError, StoreError) as error:
            findings.add(Kind.CONSENT, name, f"not an entry: {error.what if isinstance(error, StoreError) else error}", offset=at)
        at += len(line)
    return needed


def check_control(project: Project, findings: Findings) -> None:
    """Orders are whole and numbered without gaps."""
    names = project.objects.list("control/")
    for number, name in enumerate(names, 1):
        findings.count("control_orders")
        if name != f"control/{number:08d}.json":
            findings.add(Kind.CONTROL, name, f"order {number} is missing before it")
            return
    try:
        orders = list(project.control.read())
    except StoreError as error:
        findings.add(Kind.CONTROL, str(error.where), error.what)
        return
    for number, order in enumerate(orders, 1):
        if order.n != number:
            findings.add(Kind.CONTROL, f"control/{number:08d}.json", f"it says it is order {order.n}")

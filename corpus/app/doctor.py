"""`corpus doctor`: is this machine, and this install, fit for what the configuration asks. And its part in `corpus check`.

Each look is one function elsewhere; this is the list of them, and how a fault becomes a problem with a key and a line.
"""

from __future__ import annotations

from corpus.app import doctor_folders, doctor_machine, doctor_network
from corpus.app.findings import Finding
from corpus.config.check import located
from corpus.config.load import Problem
from corpus.config.tree import Config


def doctor(config: Config) -> list[Finding]:
    """Everything that was looked at, good and bad."""
    return [
        doctor_machine.python(),
        *doctor_machine.packages(),
        doctor_machine.cores(),
        doctor_machine.memory(config),
        doctor_machine.handles(config),
        *doctor_machine.clock(config),
        *doctor_folders.folders(config),
        *doctor_network.resolvers(config),
        *doctor_network.services(config),
        *doctor_network.hub_token(config),
    ]


def machine_problems(config: Config) -> list[Problem]:
    """What would stop this configuration on this machine, for `check`: faults only, and no page host is contacted."""
    looks = [
        *doctor_folders.writable(config),
        doctor_machine.handles(config),
        *doctor_machine.clock(config),
        *doctor_network.resolvers(config, wanted=False),
        *doctor_network.services(config),
        *doctor_network.hub_token(config),
    ]
    return [located(config, found.key or found.name, found.said, found.hint) for found in looks if found.state == "fault"]


def document(findings: list[Finding]) -> dict[str, object]:
    """`doctor --json`."""
    return {
        "ok": all(found.state != "fault" for found in findings),
        "counts": doctor_machine.counted(findings),
        "findings": [found.document() for found in findings],
    }

"""`corpus simulate fleet`: how a fleet shares work, and what joins, deaths and cut-off members cost it, under a virtual clock.

The decisions are the crawl's own (`simulate_fleet_world` says which). The web's log is the judge: two contacts of a host closer
than the gap are a violation, whoever made them. Without the quarantine of leases there are some, or the model could not tell.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import Any

from corpus.app.simulate_fleet_world import FleetModel, World
from corpus.crawl.assign import quota

UTILISATION = 0.95
"""What is asked of a fleet: so much of the contacts that the gaps allow, while somebody owns the hosts."""


def simulate_fleet(model: FleetModel, *, seed: int = 1) -> dict[str, Any]:
    """What a run came to. `ok`: no gap violated, every lost partition taken over in time, shares equal, and hosts kept busy.

    `utilisation`: the share of hosts' time in which they were asked or within their gap; `unowned`: in which their partitions were lost
    and not taken over yet; `resting`: taken over, while the lost owner's last contacts might have run. Seconds are virtual.
    """
    world = World(model, seed)
    world.run()
    recovered = sorted(world.recovered_s)
    bound = model.lease_s + 2 * model.beat_s
    live = [member for member in world.members.values() if member.alive and member.connected]
    owned = Counter({member.name: len(member.owned) for member in live})
    first = [member.contacts for member in live if int(member.name[1:]) < model.members]
    calm_s = model.seconds * 0.2 if model.waves else model.seconds
    used = 1 - world.web.wasted_s / (model.hosts * model.seconds)
    orphaned = sum(1 for partition in world.partitions if partition.owner not in owned)
    unowned = sum(recovered) / (model.partitions * model.seconds)
    resting = world.rested_s / (model.partitions * model.seconds)
    told: dict[str, Any] = {
        "seed": seed,
        "model": asdict(model) | {"longer_s": model.longer_s},
        "contacts": world.web.contacts,
        "violations": world.web.violations,
        "utilisation": round(used, 4),
        "unowned": round(unowned, 4),
        "resting": round(resting, 4),
        "utilisation_before_failures": round(1 - world.calm_wasted_s / (model.hosts * calm_s), 4) if model.waves else round(used, 4),
        "members": {"live": len(live), "killed": model.waves * model.killed, "cut_off": model.waves * model.cut, "rejoined": world.rejoined},
        "partitions": {"least": min(owned.values()), "most": max(owned.values()), "quota": quota(model.partitions, len(live)), "orphaned": orphaned},
        "contacts_of_a_member": {"least": min(first), "mean": round(sum(first) / len(first), 1), "most": max(first)},
        "moved": world.moved,
        "recovery_s": {
            "partitions": len(recovered),
            "median": round(recovered[len(recovered) // 2], 1) if recovered else None,
            "longest": round(recovered[-1], 1) if recovered else None,
            "bound": round(bound, 1),
        },
    }  # fmt: skip
    told["ok"] = (
        world.web.violations == 0 and not orphaned and max(owned.values()) <= quota(model.partitions, len(live))
        and used + unowned + resting >= UTILISATION and (not recovered or recovered[-1] <= bound)
    )  # fmt: skip
    return told

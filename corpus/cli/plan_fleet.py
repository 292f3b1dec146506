"""What `corpus plan --pages N --days D` prints, and how its options are read."""

from __future__ import annotations

from typing import Any

import click


class Count(click.ParamType[int]):
    """A whole number above zero; `10e9` and `10_000_000_000` are the same."""

    name = "count"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            number = float(value)
            whole = int(number)
        except (ValueError, OverflowError):
            number, whole = 0.0, 0
        if whole >= 1 and number == whole:
            return whole
        return self.fail(f"{value!r} is not a whole number above zero; write 10000000 or 1e7", param, ctx)


class Quantity(click.ParamType[float | int]):
    """Bytes or seconds, as configuration files write them."""

    def __init__(self, name: str) -> None:
        self.name = name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float | int:
        from corpus.settings import seconds, size_bytes

        try:
            return size_bytes(value) if self.name == "size" else seconds(value)
        except ValueError as error:
            return self.fail(str(error), param, ctx)


class Price(click.ParamType[tuple[str, float]]):
    """`NAME=AMOUNT`; which names there are, the plan knows."""

    name = "price"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, float]:
        """(name, amount)."""
        if isinstance(value, tuple):
            return value
        name, _, amount = str(value).partition("=")
        try:
            number = float(amount)
        except ValueError:
            number = -1.0
        if name and 0 <= number < float("inf"):
            return name, number
        return self.fail(f"{value!r} is not a price: write core-hour=0.04", param, ctx)


def render(told: dict[str, Any]) -> str:
    """The plan for a person."""
    from corpus.observe.words import count, rate, size

    target, line, manners, cores = told["target"], told["transfer"], told["politeness"], told["cores"]
    machines, stored, pg, part = told["machines"], told["stored_bytes"], told["postgresql"], told["regions"]
    fleets = told["fleets"]
    rows = [
        ("pages", f"{count(target['pages'])} of {size(target['page_bytes'])} in {target['days']:g} days: {count(told['pages_per_s'])} a second"),
        ("transfer", f"at most {size(line['at_most_bytes_per_s'])}/s, {line['at_most_gbit_per_s']:.1f} Gbit/s; compressed, as most sites send, {line['likely_gbit_per_s']:.1f} Gbit/s"),
        ("politeness", f"{count(manners['ready_hosts'])} hosts due at every moment at {target['gap_s']:g} s; at most {count(manners['pages_a_host_at_most'])} pages of a host: {count(manners['hosts'])} hosts in all"),
        ("in flight", f"{count(told['in_flight'])} requests"),
        ("fetching", f"{count(cores['fetch'])} cores, {machines['fetch_processes']} processes, {machines['fetch']} machines of {machines['cores_each']} cores and {machines['gbit_each']:g} Gbit/s"),
        ("measuring", f"{count(cores['process'])} cores meanwhile, {machines['process']} machines; band join {count(cores['clusters_core_hours'])} core-hours more"),
        ("archives", f"{size(stored['warc'])} WARC, {size(stored['parquet'])} Parquet"),
        ("frontier", f"{size(stored['frontier'])}; PostgreSQL {rate(pg['server_cores'])} cores, {count(pg['new_urls_per_s'])} new URLs/s, {size(pg['log_bytes_per_s'])}/s of log, {pg['primaries']} primaries"),
        ("fleets", f"{fleets['fleets']}, each of {fleets['workers_each']} workers on a database of its own with store.partition_files = {fleets['partition_files']}"),
    ]  # fmt: skip
    rows += [
        (
            "seen URLs",
            f"{seen['of']} ({count(seen['urls'])}): Bloom filter {size(seen['bloom_0.001'])} at 0.1 %, {size(seen['bloom_0.01'])} at 1 %; 8-byte hashes {size(seen['hashes'])}; text {size(seen['strings'])}",
        )
        for seen in told["seen"]
    ]
    if part["regions"] > 1:
        rows.append(("each region", f"{count(part['pages_per_s_each'])} pages/s, {part['gbit_per_s_each']:.1f} Gbit/s, {part['fetch_machines_each']} fetching machines, {count(part['ready_hosts_each'])} hosts due"))  # fmt: skip
    if told["money"]:
        rows.append(("money", ", ".join(f"{name} {amount:,.0f}" for name, amount in told["money"].items())))
    lines = [f"{name:<12}{words}" for name, words in rows]
    lines += [f"note: {note}" for note in told["notes"]]
    lines += ["", "what this rests on:"]
    lines += [f"  {a['name']}: {a['value']:,.6g} {a['unit']} ({a['source']})" for a in told["assumptions"]]
    return "\n".join(lines)

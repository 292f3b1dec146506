"""`corpus simulate`: the real decisions in a modelled world, and what they are worth against simpler ones."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from corpus.cli.options import as_json, emit, load

if TYPE_CHECKING:
    from corpus.config.tree import Config

config_option = click.option("-c", "--config", "config_file", default=None, metavar="FILE", help="Configuration to try.")
set_option = click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Override one key; repeatable.")
seed_option = click.option("--seed", default=1, show_default=True, help="Everything that is drawn follows from it.")


@click.group(name="simulate")
def command() -> None:
    """Simulations under a virtual clock: nothing is fetched, and a run is the same every time."""


@command.command()
@config_option
@set_option
@seed_option
@as_json
def politeness(config_file: str | None, overrides: tuple[str, ...], seed: int, as_json: bool) -> int:
    """Our pacing against a modelled origin behind a CDN, beside one shared FIFO and a fixed rate."""
    from corpus.app.simulate_origin import OriginModel
    from corpus.app.simulate_politeness import simulate_politeness
    from corpus.crawl.settings import CrawlSettings

    config = _config(config_file, overrides)
    told = simulate_politeness(OriginModel(), CrawlSettings() if config is None else config.crawl, seed=seed)
    if as_json:
        emit(told)
    else:
        click.echo(_politeness(told))
    return 0 if told["ok"] else 1


@command.command()
@seed_option
@click.option("--sites", default=270, show_default=True, type=click.IntRange(1))
@click.option("--pages", default=720_000, show_default=True, type=click.IntRange(1), help="In all; the whole takes many minutes.")
@click.option("--plot", type=click.Path(dir_okay=False, writable=True), default=None, help="Write an SVG.")
@as_json
def recrawl(seed: int, sites: int, pages: int, plot: str | None, as_json: bool) -> int:
    """How fresh pages are kept by visiting all alike, and in proportion to how often they change: four months."""
    from corpus.app.simulate_plot import recrawl_svg
    from corpus.app.simulate_recrawl import RecrawlModel, simulate_recrawl

    told = simulate_recrawl(RecrawlModel(sites=sites, pages=pages), seed=seed)
    if plot is not None:
        Path(plot).write_text(recrawl_svg(told), "utf-8")
    if as_json:
        emit(told)
    else:
        click.echo(_recrawl(told))
    return 0 if told["ok"] else 1


@command.command()
@seed_option
@click.option("--members", default=1000, show_default=True, type=click.IntRange(2), help="Workers at the beginning.")
@click.option("--hours", default=0.25, show_default=True, type=click.FloatRange(0.05), help="Virtual ones.")
@click.option("--without-quarantine", is_flag=True, help="Take files over when a lease ends, and at once: to see that it shows.")
@as_json
def fleet(seed: int, members: int, hours: float, without_quarantine: bool, as_json: bool) -> int:
    """A fleet in which workers join, die and are cut off: how busy hosts are kept, how evenly, and whether every gap holds."""
    from corpus.app.simulate_fleet import simulate_fleet
    from corpus.app.simulate_fleet_world import WAVE_S, FleetModel

    hit = max(members // 100, 1)
    waves = min(max(int(hours * 3600.0 * 0.5 // WAVE_S), 1), 3)
    model = FleetModel(
        members=members, partitions=4 * members, hosts=8 * members, seconds=hours * 3600.0, waves=waves, killed=hit, cut=hit, joined=hit,
        quarantine=not without_quarantine,
    )  # fmt: skip
    told = simulate_fleet(model, seed=seed)
    if as_json:
        emit(told)
    else:
        click.echo(_fleet(told))
    return 0 if told["ok"] else 1


def _config(config_file: str | None, overrides: tuple[str, ...]) -> Config | None:
    """The configuration that was named, or (with overrides alone) the one that lies here; None: the defaults."""
    if config_file is None and not overrides:
        return None
    return load(config_file or "corpus.toml", overrides, fetching=False)


def _politeness(told: dict[str, Any]) -> str:
    model, goals = told["model"], told["goals"]
    lines = [
        (
            f"{model['hosts']} hosts of {model['pages']} pages behind a CDN; the origin renders {model['workers'] / model['render_s']:g} pages/s; "
            f"{model['people_per_s']:g} people/s, {model['surge_factor']:g} times as many for {model['surge_s']:g} s"
        ),
        "",
        f"{'':8}{'pages/h':>9}{'requests':>10}{'expensive':>11}{'origin':>8}{'p95 calm':>10}{'p95 surge':>11}{'harm':>7}{'recovered':>11}",
    ]
    for run in told["runs"]:
        back = "-" if run["policy"] == "none" else "never" if run["recovered_s"] is None else f"{run['recovered_s']:.0f} s"
        verdict = "" if run["policy"] == "none" else "  passes" if run["polite"] and run["recovers"] else "  fails"
        lines.append(
            f"{run['policy']:8}{run['pages_per_hour']:>9.0f}{run['share_of_requests']:>10.1%}{run['share_of_expensive']:>11.1%}"
            f"{run['origin_load']:>8.1%}{run['human_p95_calm_s']:>9.3f}s{run['human_p95_surge_s']:>10.3f}s{run['harm']:>7.2f}{back:>11}{verdict}"
        )
    lines += [
        "",
        "requests, expensive: the crawler's share of all requests and of those that reached the origin. harm: people's p95 over",
        f"that without a crawl (goal: at most {goals['harm']:g}). recovered: until {goals['recovered']:.0%} of the rate before the surge is held again",
        f"(goal: within {goals['within_s']:g} s). The FIFO and the fixed rate must fail, or the model could not tell a polite crawl.",
    ]
    return "\n".join(lines)


def _fleet(told: dict[str, Any]) -> str:
    model, members, parts, recovery, each = (
        told[name] for name in ("model", "members", "partitions", "recovery_s", "contacts_of_a_member")
    )
    lasting = (
        f"half of them within {recovery['median']} s, the last after {recovery['longest']} s (at most {recovery['bound']} s)"
    )
    return "\n".join(
        [
            f"{model['members']} workers, {model['partitions']} partitions, {model['hosts']} hosts {model['delay_s']:g} s apart, {model['seconds']:g} s",
            f"{members['killed']} workers were killed, {members['cut_off']} cut off ({members['rejoined']} for too long); {members['live']} are there at the end",
            "",
            f"contacts      {told['contacts']:,}; a worker's: {each['least']} to {each['most']}, {each['mean']} on average",
            f"utilisation   {told['utilisation']:.1%} of the contacts that the gaps allow ({told['utilisation_before_failures']:.1%} before anything failed; {told['unowned']:.1%} of hosts' time was lost to failures, {told['resting']:.1%} rested after them)",
            f"balance       {parts['least']} to {parts['most']} partitions a worker (at most {parts['quota']}), {parts['orphaned']} without one; {told['moved']} moves",
            f"recovery      {recovery['partitions']} lost partitions were taken over, {lasting}"
            if recovery["partitions"]
            else "recovery      nothing was lost",
            f"gaps          {told['violations']} violated",
        ]
    )


def _recrawl(told: dict[str, Any]) -> str:
    model, goals = told["model"], told["goals"]
    lines = [
        (
            f"{model['sites']} sites, {model['pages']} pages, {model['days']:g} days; rates of change are gamma-distributed (shape {model['shape']:g}), "
            f"on average one in {model['mean_days']:g} days"
        ),
        "",
        f"{'visits':>12}  {'policy':13}{'freshness':>10}{'closed form':>13}{'per page':>10}{'latest':>9}{'CPU':>8}",
    ]
    for run in told["runs"]:
        budget = f"per {run['every_days']:g} days"
        lines.append(
            f"{budget:>12}  {run['mode']:13}{run['freshness']:>10.4f}{run['closed_form']:>13.4f}{run['visits']:>10.3f}"
            f"{run['latest_s']:>8.1f}s{run['cpu_s']:>7.0f}s"
        )
    gains = ", ".join(f"{gain:+.4f}" for gain in told["gains"])
    best = ", ".join(f"{value:.4f}" for value in told["optimal"].values())
    lines += [
        "",
        f"uniform over proportional: {gains} (goal: at least +{goals['gain']:g}; both within {goals['close']:g} of the closed form)",
        f"the best that knowing every rate exactly could do: {best}",
    ]
    return "\n".join(lines)

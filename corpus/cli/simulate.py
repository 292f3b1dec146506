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

"""The fifteen crawl scenarios that real crawlers' bug reports made, and the tests that play each of them.

A scenario without a test, or a test that has been renamed away, fails here.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent.parent

SCENARIOS: dict[int, tuple[str, tuple[str, ...]]] = {
    1: (
        "kill -9 at random moments, 200 times, over a 10,000-page crawl: all recorded, nothing double, no gap short",
        (
            "laws/test_law_kills.py::test_twenty_kills_lose_nothing_double_nothing_and_break_no_gap",
            "laws/test_law_kills.py::test_two_hundred_kills_over_ten_thousand_pages",
            "sim/test_sim_crawl.py::test_crashes_at_any_moment_lose_nothing_and_break_no_gap",
        ),
    ),
    2: (
        "429 with Retry-After (seconds, a date, a date gone by): silence, others unaffected, then slower",
        (
            "sim/test_sim_manners.py::test_a_429_with_retry_after_silences_the_host_and_no_other",
            "sim/test_sim_manners.py::test_a_retry_after_in_the_past_is_no_leave_to_hurry",
        ),
    ),
    3: (
        "robots.txt 503, reset, timeout, TLS, NXDOMAIN, 429: deferred, then open; 404 and 410 allow; 403 by choice",
        (
            "sim/test_sim_manners.py::test_an_unreadable_robots_txt_defers_the_host_and_opens_later",
            "sim/test_sim_crawl.py::test_every_page_of_the_zoo_ends_as_it_must",
            "unit/test_optout_bad_input.py::test_answers_that_are_no_file",
        ),
    ),
    4: (
        "robots groups, stacked agents, odd tokens, ties, queries, escapes, BOM, CR, a line cut at 500 KiB",
        (
            "conformance/test_optout_google.py",
            "unit/test_optout_robots.py::test_nothing_but_a_rule_ends_a_list_of_agents",
            "unit/test_optout_robots.py::test_a_cut_last_line_is_not_read",
            "unit/test_optout_robots.py::test_readings_of_escapes",
        ),
    ),
    5: (
        "sixty wildcards against 2,000 characters in a moment",
        ("unit/test_optout_bad_input.py::test_sixty_wildcards_against_a_long_path",),
    ),
    6: (
        "robots redirects: five hops over hosts, six too many, a private address",
        (
            "sim/test_sim_manners.py::test_robots_redirects_across_hosts_are_read_at_their_own_pace",
            "sim/test_sim_manners.py::test_two_hosts_whose_robots_redirect_to_each_other_both_end",
            "sim/test_sim_crawl.py::test_every_page_of_the_zoo_ends_as_it_must",
        ),
    ),
    7: (
        "300 virtual hosts on one address, 300 subdomains of one domain: one at a time, 1,000 others unaffected",
        (
            "sim/test_sim_manners.py::test_many_hosts_on_one_address_and_one_domain_take_turns",
            "sim/test_schedule_crawls.py::test_virtual_hosts_and_subdomains_share_one_clock_and_slow_nobody_else",
        ),
    ),
    8: (
        "one giant and many small hosts: the small are done in a few gaps, one slot for the giant, flat memory",
        (
            "sim/test_sim_manners.py::test_a_giant_does_not_hold_up_the_small",
            "sim/test_schedule_crawls.py::test_one_giant_does_not_hold_the_small_ones",
            "sim/test_schedule_crawls.py::test_memory_of_a_schedule_does_not_grow_with_hosts_that_are_done",
        ),
    ),
    9: (
        "bombs in every coding, nested, and in a sitemap: cut at the cap, memory bounded, the crawl goes on",
        (
            "unit/test_page_encoding.py::test_a_bomb_costs_no_more_than_the_cap",
            "unit/test_page_encoding.py::test_a_nested_bomb_is_bounded_too",
            "unit/test_sitemap_read.py::test_limits",
            "contract/test_fetch_transport.py::test_a_bomb_is_cut_or_refused",
        ),
    ),
    10: (
        "dripping bodies, endless headers, a DNS black hole: freed by the clock; stop ends within ten seconds",
        (
            "contract/test_fetch_transport.py::test_a_broken_server_is_a_failure_within_its_limit",
            "contract/test_fetch_transport.py::test_a_slow_drip_is_too_slow",
            "sim/test_fetch_dns.py::test_the_systems_resolver_never_blocks_past_its_time",
            "sim/test_crawl_processes.py::test_an_interrupt_drains_within_ten_seconds_and_resumes",
        ),
    ),
    11: (
        "redirects to itself, in a circle, of many pages to one, out of scope",
        ("sim/test_sim_urls.py::test_redirects_are_bounded_and_lose_nothing",),
    ),
    12: (
        "calendars, paths that go round, session ids, one article under thousands of names: left early, with a reason",
        (
            "sim/test_traps.py::test_real_pages_are_found_and_traps_are_left_early",
            "sim/test_traps.py::test_one_article_under_many_names_ends_by_its_budget",
            "sim/test_traps.py::test_a_large_documentation_site_loses_nothing",
        ),
    ),
    13: (
        "canonical forms: idempotent, never another resource, never an exception",
        (
            "laws/test_url_canonical_laws.py::test_canonical_is_total_and_idempotent",
            "laws/test_url_canonical_laws.py::test_escapes_never_change_the_resource",
            "unit/test_url_canonical.py::test_what_could_mean_another_resource_stays",
        ),
    ),
    14: (
        "a full disk, a killed frontier store, clocks that jump by an hour, a machine that sleeps: no damage, a clean resume",
        (
            "sim/test_sim_crawl.py::test_a_full_disk_ends_the_run_with_its_error_and_loses_nothing",
            "unit/test_frontier_sqlite.py::test_a_full_disk_is_a_store_error_and_leaves_nothing_of_the_batch",
            "sim/test_frontier_kill.py::test_a_killed_owner_loses_nothing_it_was_told_is_stored",
            "sim/test_sim_manners.py::test_clock_jumps_of_an_hour_move_no_gap",
            "laws/test_law_suspend.py::test_a_suspended_crawl_goes_on_where_it_was",
        ),
    ),
    15: (
        "first seen too deep, later nearer; the last URL fails twice and passes; a Crawl-delay of 600",
        (
            "sim/test_sim_urls.py::test_a_url_first_seen_too_deep_is_fetched_when_seen_nearer",
            "sim/test_sim_crawl.py::test_the_last_url_fails_twice_and_then_arrives",
            "sim/test_sim_crawl.py::test_a_run_ends_once_and_never_spins",
            "sim/test_sim_manners.py::test_crawl_delay_600_parks_with_the_reason",
        ),
    ),
}


@pytest.mark.parametrize("number", range(1, 16))
def test_every_scenario_is_played(number: int) -> None:
    """Each scenario has tests, and each of them exists and does something."""
    what, names = SCENARIOS[number]
    assert what
    assert names
    for name in names:
        file, _, function = name.partition("::")
        tree = ast.parse((TESTS / file).read_text("utf-8"))
        found = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
        assert not function or len(found[function].body) > 1, name
        assert function or found, name


def test_there_are_fifteen() -> None:
    """No more and no fewer than the list."""
    assert sorted(SCENARIOS) == list(range(1, 16))

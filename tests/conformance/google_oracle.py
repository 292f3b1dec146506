"""Google's verdicts, by a faithful Python port of its parser (a test dependency only): parse once, ask often."""

from __future__ import annotations

import re
from typing import Any

from gpyrobotstxt.robots_cc import RobotsMatcher, get_path_params_query
from gpyrobotstxt.robotstxtparser import RobotsTxtParser


class _Recorder:
    """Takes the parser's events in place of a matcher."""

    def __init__(self) -> None:
        self.events: list[tuple[str, tuple[Any, ...]]] = []

    def __getattr__(self, name: str) -> Any:
        return lambda *arguments: self.events.append((name, arguments))


class GoogleOracle:
    """One robots.txt. `allows` is what Google's code would say."""

    def __init__(self, body: bytes) -> None:
        # the port fails on a line of one word without a colon, which the original ignores
        lines = (line.partition(b"#")[0].strip() for line in re.split(rb"\r\n|\r|\n", body))
        recorder = _Recorder()
        RobotsTxtParser(b"\n".join(line if re.search(rb"[: \t]", line) else b"" for line in lines), recorder).parse()
        self._events = recorder.events

    def allows(self, agent: str, url: str) -> bool:
        matcher = RobotsMatcher()
        matcher.init_user_agents_and_path([agent], get_path_params_query(url))
        for name, arguments in self._events:
            getattr(matcher, name)(*arguments)
        return not matcher.disallow()

"""A child process and its link: what becomes of one that cannot read what its parent says."""

from __future__ import annotations

from typing import Any

import pytest

from corpus.engine.process import DEAF, Link, start


class Unreadable:
    """Packs, and cannot be unpacked."""

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return int, ("no number",)


def waits(spec: str, link: Link) -> None:
    """In the child: wait for what never comes whole."""
    if spec == "fails":

        def fail() -> None:
            raise RuntimeError("nobody to tell")

        link.on_message = fail
    link.send(("ready",))
    while link.receive() != ("end",):
        pass


@pytest.mark.parametrize(("spec", "message"), [("reads", Unreadable()), ("fails", ("news",))])
def test_a_child_that_hears_nothing_any_more_ends(spec: str, message: Any, capfd: pytest.CaptureFixture[str]) -> None:
    """Whether a message cannot be unpacked or whoever is told of it fails: it says why and ends, so that it has a successor."""
    child = start("probe", "tests.unit.test_engine_process:waits", spec)
    try:
        assert child.connection.poll(60)
        assert child.connection.recv() == ("ready",)
        assert child.send(message)
        child.process.join(60)
        assert child.exit_code() == DEAF
    finally:
        child.stop()
    assert "Error" in capfd.readouterr().err

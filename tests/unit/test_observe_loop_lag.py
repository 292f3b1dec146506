"""Loop lag: a loop that is blocked says so, and what was a wait for a core is not called its own."""

from __future__ import annotations

import asyncio
import time

import pytest

from corpus.observe import loop_lag
from corpus.observe.loop_lag import CoreWait, LoopLag


async def _blocked(seconds: float) -> LoopLag:
    """A loop that is blocked once while its timer runs."""
    lag = LoopLag()
    task = asyncio.create_task(lag.run())
    await asyncio.sleep(0)
    time.sleep(seconds)  # noqa: ASYNC251  (the point)
    await asyncio.sleep(loop_lag.TIMER_S)  # due after the timer that is late
    task.cancel()
    return lag


def test_a_blocked_loop_is_late_of_its_own_doing() -> None:
    """A call of 300 ms inside the loop is in both numbers."""
    lag = asyncio.run(_blocked(0.3))
    assert lag.p99_ms() >= 280
    assert lag.own_p99_ms() >= 200


def test_a_wait_for_a_core_is_no_lag_of_our_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the kernel says the thread waited for a core is left out of the second number."""

    class Waits(CoreWait):
        def __init__(self) -> None:
            super().__init__()
            self.asked = 0

        def seconds(self) -> float:
            self.asked += 1
            return 0.25 * (self.asked - 1)

    monkeypatch.setattr(loop_lag, "CoreWait", Waits)
    lag = asyncio.run(_blocked(0.3))
    assert lag.p99_ms() >= 280
    assert lag.own_p99_ms() <= lag.p99_ms() - 249


def test_where_the_kernel_does_not_say_all_lag_is_our_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without these counters nothing is subtracted, and nothing breaks."""
    monkeypatch.setattr(loop_lag.threading, "get_native_id", lambda: -1)
    assert CoreWait().seconds() == 0.0
    lag = asyncio.run(_blocked(0.05))
    assert lag.own_p99_ms() == lag.p99_ms()


def test_before_the_first_timer_there_is_nothing_to_say() -> None:
    """A process that just began."""
    assert (LoopLag().p99_ms(), LoopLag().own_p99_ms()) == (0.0, 0.0)

"""The deadline of a fetch: it may move, it ends what it guards once, and it is nobody else's cancellation."""

from __future__ import annotations

import asyncio

import pytest

from corpus.crawl.fetch_line import Guard


def guarded(*moves: tuple[float, float], work_s: float = 30.0) -> str:
    """How a block of work ends whose deadline is set (seconds from the start of the block) at these times."""

    async def main() -> str:
        time = asyncio.get_running_loop().time
        try:
            guard = Guard()
            with guard:
                began = time()
                for at, until in moves:
                    await asyncio.sleep(max(began + at - time(), 0.0))
                    guard.until(began + until)
                await asyncio.sleep(work_s)
        except TimeoutError:
            return "late"
        return "done"

    return asyncio.run(main())


@pytest.mark.parametrize(
    ("moves", "work_s", "outcome"),
    [
        (((0.0, 0.05),), 30.0, "late"),
        (((0.0, 30.0), (0.0, 0.05)), 30.0, "late"),
        (((0.0, 0.1), (0.0, 0.2)), 30.0, "late"),
        (((0.0, 0.2), (0.0, 60.0)), 0.5, "done"),
        ((), 0.01, "done"),
    ],
)
def test_the_last_deadline_counts(moves: tuple[tuple[float, float], ...], work_s: float, outcome: str) -> None:
    """Set, moved nearer, moved away: only the deadline that was set last ends the work."""
    assert guarded(*moves, work_s=work_s) == outcome


def test_a_cancellation_from_outside_stays_one() -> None:
    """Whoever cancels the task sees it cancelled, not late, and nothing rings afterwards."""

    async def main() -> None:
        async def work() -> None:
            guard = Guard()
            with guard:
                guard.until(asyncio.get_running_loop().time() + 0.2)
                await asyncio.sleep(30)

        task = asyncio.create_task(work())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(0.3)

    asyncio.run(main())

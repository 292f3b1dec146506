"""Pages that advertise a licence document which nobody has read yet: they wait in memory until it is, then are decided.

Such a page waits at its host's desk, and the document is the next thing that is asked for. One that is not ours to ask
for, or that its server does not hand out, counts as no licence. Nothing that waits here is durable: after a crash the
page is asked for again.
"""

from __future__ import annotations

from corpus.crawl.answers import Answers, Conclusion, Undecided
from corpus.crawl.authority import Ask, AuthorityBook
from corpus.crawl.desk import Desk
from corpus.url.host import authority_of


def decide_waiting(
    desk: Desk, book: AuthorityBook, answers: Answers, wall: float
) -> tuple[list[tuple[Undecided, Conclusion]], Ask | None]:
    """The waiting pages that can be concluded now, and the file that must be read for one that cannot."""
    pages, desk.undecided = desk.undecided, []
    done: list[tuple[Undecided, Conclusion]] = []
    missing: Ask | None = None
    for page in pages:
        step = _wanted(page, book, wall)
        if step is not None:
            desk.undecided.append(page)
            missing = missing or step
            continue
        authority = authority_of(page.contact.found)
        told = answers.decide(page, desk.row, desk.file, wall, book.licences(authority), final=True)
        assert isinstance(told, Conclusion), "a final decision is one"
        done.append((page, told))
    return done, missing


def _wanted(page: Undecided, book: AuthorityBook, wall: float) -> Ask | None:
    """The first document that can still be asked for. Where robots.txt cannot be read, nothing is waited for."""
    authority = authority_of(page.contact.found)
    steps = (book.licence(authority, url, wall) for url in page.wanted)
    return next((step for step in steps if isinstance(step, Ask)), None)

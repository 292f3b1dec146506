"""The compiled form of one authority's statements, and the judge that answers for one URL at a time.

A `Plan` is what was read: plain data, small, equal for equal files. A `Judge` is its matchers. Answers that rest on the
same statements are the same object, so that a hundred thousand decisions a second cost no more than their matching;
nothing is remembered about a URL.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from corpus.model import Access, Consent, Evidence
from corpus.optout.ai_txt import AiTxt, AiTxtRules
from corpus.optout.aipref import ContentUsage
from corpus.optout.content_signal import ContentSignals
from corpus.optout.decide import access_of, decide
from corpus.optout.evidence import Origin, stated
from corpus.optout.match import Target, target_of
from corpus.optout.peers import PeerVoices
from corpus.optout.robots import Rule
from corpus.optout.rsl import Licence, licence_scope
from corpus.optout.rules import Ruleset
from corpus.optout.select import Selection, pack, unpack
from corpus.optout.settings import OptoutSettings
from corpus.optout.tdmrep import TdmFile, TdmRule, TdmRules

ROBOTS_PATH = "/robots.txt"
_ROOT = Target("/", "/")
_MEMO_MAX = 4_096


class Speaker(Protocol):
    """Anything of an authority that makes statements about its URLs."""

    def at(self, target: Target) -> tuple[Evidence, ...]: ...


class ScopedSpeaker(Speaker, Protocol):
    """One that knows whether it says the same about every URL."""

    @property
    def fixed(self) -> bool: ...


class Plan(NamedTuple):
    """`known`: a robots.txt was read, and its `selection` binds. `always`: statements about every URL, as
    (signal, value, origin, raw). `quorum` peers must refuse together."""

    known: bool
    origin: Origin
    selection: Selection
    quorum: int
    always: tuple[tuple[str, str, Origin, str], ...]
    tdm: TdmFile
    tdm_origin: Origin
    ai_txt: tuple[tuple[AiTxt, Origin], ...]
    licences: tuple[Licence, ...]

    def places(self) -> tuple[str, ...]:
        """A path under each pattern that a statement is limited to, wildcards filled in."""
        selections = (self.selection, *(parsed.selection for parsed, _ in self.ai_txt))
        patterns = [rule.pattern for one in selections for rule in one.rules]
        patterns += [rule.pattern for one in selections for peer in one.peers for rule in peer.rules]
        patterns += [rule.location for rule in self.tdm.rules]
        patterns += [pattern for licence in self.licences for pattern, _, _ in licence.contents]
        patterns += [word for signal in self.selection.signals if (word := signal.value.split(" ", 1)[0]).startswith("/")]
        return tuple(
            sorted({pattern.removesuffix("$").replace("*", "x") for pattern in patterns if pattern.startswith(("/", "*"))})
        )

    def plain(self) -> tuple[Any, ...]:
        """Nested plain tuples, for marshal."""
        return (
            self.known,
            tuple(self.origin),
            pack(self.selection),
            self.quorum,
            tuple((signal, value, tuple(origin), raw) for signal, value, origin, raw in self.always),
            (tuple(map(tuple, self.tdm.rules)), self.tdm.unreadable),
            tuple(self.tdm_origin),
            tuple(((pack(parsed.selection), parsed.denial), tuple(origin)) for parsed, origin in self.ai_txt),
            tuple((tuple(item.origin), item.value, item.raw, item.contents) for item in self.licences),
        )

    @staticmethod
    def of_plain(plain: tuple[Any, ...]) -> Plan:
        """What `plain` made plain."""
        known, origin, selection, quorum, always, (tdm_rules, unreadable), tdm_origin, ai_txt, licences = plain
        return Plan(
            known,
            Origin(*origin),
            unpack(selection),
            quorum,
            tuple((signal, value, Origin(*where), raw) for signal, value, where, raw in always),
            TdmFile(tuple(TdmRule(*row) for row in tdm_rules), unreadable),
            Origin(*tdm_origin),
            tuple((AiTxt(unpack(packed), denial), Origin(*where)) for (packed, denial), where in ai_txt),
            tuple(Licence(Origin(*where), value, raw, contents) for where, value, raw, contents in licences),
        )


class Judge:
    """Built once per authority in use; every answer is what `decide` says about its evidence."""

    __slots__ = ("_always", "_memo", "_open", "_origin", "_own", "_refusals", "_settings", "_speakers", "_static")

    def __init__(self, plan: Plan, settings: OptoutSettings) -> None:
        self._settings = settings
        self._origin = plan.origin
        self._own = Ruleset(plan.selection.rules)
        self._always = tuple(stated(signal, value, origin, raw=raw) for signal, value, origin, raw in plan.always)
        self._open = (stated("robots", "no-match", plan.origin),) if plan.known else ()
        self._static, self._speakers = _speakers(plan, settings, self._always)
        self._refusals: dict[int, Consent] = {}
        self._memo: dict[tuple[int, ...], Consent] = {}

    def judge(self, url: str) -> Consent:
        """Both verdicts on a URL of this authority, as it would be requested."""
        target = target_of(url)
        rule = self._own.find(target)
        if rule is not None and not rule.allow:
            if target.literal != ROBOTS_PATH:
                return self._refusals.get(rule.line_no) or self._refusal(rule)
            rule = None
        said = self._static
        for speaker in self._speakers:
            if found := speaker.at(target):
                said = said + found
        # statements live as long as this judge, so their identities name the combination
        key = (0 if rule is None else rule.line_no, *map(id, said))
        return self._memo.get(key) or self._settle(key, rule, said)

    def allows(self, target: Target) -> bool:
        """Robots.txt alone."""
        if target.literal == ROBOTS_PATH:
            return True
        rule = self._own.find(target)
        return (rule is None or rule.allow) and access_of(self._always) is Access.YES

    def given_up(self) -> Consent:
        """The answer once a robots.txt has been unreachable for too long: no, though it is asked for again."""
        said = stated("robots-file", "silent", self._origin, raw="unreachable for more than 30 days")
        return decide((said, *self._static), self._settings)

    def _refusal(self, rule: Rule) -> Consent:
        said = stated("robots", "disallow", self._origin, raw=rule.raw, line_no=rule.line_no)
        return self._refusals.setdefault(rule.line_no, decide((said, *self._always), self._settings))

    def _settle(self, key: tuple[int, ...], rule: Rule | None, said: tuple[Evidence, ...]) -> Consent:
        access = self._open if rule is None else (stated("robots", "allow", self._origin, raw=rule.raw, line_no=rule.line_no),)
        if len(self._memo) >= _MEMO_MAX:
            self._memo.clear()
        return self._memo.setdefault(key, decide((*access, *said), self._settings))


def _speakers(
    plan: Plan, settings: OptoutSettings, always: tuple[Evidence, ...]
) -> tuple[tuple[Evidence, ...], tuple[Speaker, ...]]:
    """Statements that are the same for every URL, and the speakers whose statements depend on it."""
    near_miss = settings.near_miss
    static = list(always)
    varying: list[Speaker] = []
    peers = PeerVoices(plan.selection.peers, plan.quorum, plan.origin, near_miss=near_miss)
    if peers:
        varying.append(peers)
    signals = plan.selection.signals
    scopes: list[ScopedSpeaker] = [
        ContentSignals(signals, plan.origin, near_miss=near_miss),
        ContentUsage(signals, plan.origin, near_miss=near_miss),
        *(licence_scope(item) for item in plan.licences),
    ]
    for scoped in scopes:
        if scoped.fixed:
            static.extend(scoped.at(_ROOT))
        else:
            varying.append(scoped)
    if plan.tdm.rules or plan.tdm.unreadable:
        varying.append(TdmRules(plan.tdm, plan.tdm_origin))
    for parsed, origin in plan.ai_txt:
        speaker = AiTxtRules(parsed, plan.quorum, origin, near_miss=near_miss)
        if speaker:
            varying.append(speaker)
    return tuple(static), tuple(varying)

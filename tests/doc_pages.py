"""Documentation as something that runs: pages in, commands with their expected output out, and a reader who types them.

A block that is fenced as `console` holds commands after `$ ` and what they print; `…` stands for anything. In indented blocks
a line that begins with a word of `PROGRAMS` is a command. A comment before a fence says what the reader does with it:
`exit 2` (how it ends), `file PATH` (write the block there), `meanwhile` (a second terminal), `not run: WHY`.
"""

from __future__ import annotations

import contextlib
import re
import shlex
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from corpus.errors import UsageError
from corpus.observe.summary import render_funnel
from corpus.testing.demo.server import serving
from tests.demo_corpus import DemoCorpus, Said, corpus_cli

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PROGRAMS = ("corpus", "make", "pip", "python", "CORPUS_FOLDER=../demo-corpus", "duckdb", "curl")
PORT = ":8437"
"""The port that pages name; the demo takes another one where it is taken."""
PATIENCE_S = 30
_FENCE = re.compile(r"(?:<!-- (?P<say>[^>]*) -->\n)?^```(?P<kind>[a-z]+)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
_NUMBER = re.compile(r"\b[0-9a-f]{16,}\b|[0-9]+(?:[.,:][0-9]+)*")


@dataclass(frozen=True, slots=True)
class Step:
    """What a reader does at one place of a page: a command, or a file (`writes`) with its text in `expected`."""

    page: str
    line: int
    command: str
    expected: tuple[str, ...] = ()
    exit: int = 0
    writes: str = ""
    meanwhile: bool = False
    not_run: str = ""

    def __str__(self) -> str:
        return f"{self.page}:{self.line}: {self.command or self.writes}"


def steps(path: Path) -> list[Step]:
    """Every step of a page, in order; fenced blocks first recognised, then the indented ones between them."""
    text = path.read_text("utf-8")
    found = [step for match in _FENCE.finditer(text) for step in _fenced(path.name, text, match)]
    outside = _FENCE.sub(lambda match: "\n" * match[0].count("\n"), text)
    for number, line in enumerate(outside.split("\n"), 1):
        command = line.strip().removeprefix("$ ")
        if line.startswith("    ") and command.split(" ", 1)[0] in PROGRAMS and "#:" not in command:
            found.append(Step(path.name, number, command))
    return sorted(found, key=lambda step: step.line)


def _fenced(page: str, text: str, match: re.Match[str]) -> Iterator[Step]:
    say, line = match["say"] or "", text[: match.start("body")].count("\n") + 1
    word, _, rest = say.partition(" ")
    lines = match["body"].rstrip("\n").split("\n")
    if word == "file":
        yield Step(page, line, "", tuple(lines), writes=rest)
    if match["kind"] != "console":
        return
    options = {"exit": int(rest) if word == "exit" else 0, "meanwhile": word == "meanwhile"}
    not_run = rest.removeprefix("run: ") if word == "not" else ""
    starts = [number for number, shown in enumerate(lines) if shown.startswith("$ ")]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        yield Step(page, line + start, lines[start][2:], tuple(lines[start + 1 : end]), not_run=not_run, **options)  # type: ignore[arg-type]


@dataclass(slots=True)
class Reader:
    """Types the commands of a page, in a folder of its own where the demo may lie already. `close` ends what it started."""

    home: Path
    demo: DemoCorpus
    here: Path = field(init=False)
    _stack: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    def __post_init__(self) -> None:
        self.here = self.home

    def close(self) -> None:
        """The second terminal is closed."""
        self._stack.close()

    def does(self, step: Step) -> Said:
        """Carry out one step. A command that is none of `PROGRAMS` is a mistake of the page."""
        if step.writes:
            path = self.home / step.writes
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self._real("\n".join(step.expected)) + "\n", "utf-8")
            return Said(0, "", "")
        words = shlex.split(self._real(step.command), comments=True)
        assert not {"|", ">", "<", "&&", ";", "&"} & set(words), f"{step}: one command a line, without a shell"
        match words:
            case ["cd", folder]:
                self.demo_is_here()
                self.here = self.home / folder
                return Said(0, "", "")
            case ["corpus", "demo"]:
                self.demo_is_here()
                summary = self.demo.summary
                return Said(0, f"{summary.sentence}\n\n{render_funnel(summary.funnel)}\n\nnext:\n", "")
            case ["python", "-m", "corpus.testing.demo.server"] if step.meanwhile:
                self._serve()
                return Said(0, "", "")
            case ["corpus", *arguments]:
                if "demo-corpus" in step.command:
                    self.demo_is_here()
                with contextlib.chdir(self.here):
                    return corpus_cli(*arguments)
            case _:
                raise AssertionError(f"{step}: the test cannot type this; say why it is not run")

    def demo_is_here(self) -> None:
        """The reader has made the demo corpus earlier."""
        if not (self.home / "demo-corpus").exists():
            shutil.copytree(self.demo.folder, self.home / "demo-corpus")

    def _serve(self) -> None:
        """The bundled web, where the demo found it. Another demo may hold the port for some seconds."""
        for _ in range(PATIENCE_S):
            try:
                self._stack.enter_context(serving(port=self._port))
                return
            except UsageError:
                time.sleep(1.0)
        raise AssertionError(f"port {self._port} stayed taken for {PATIENCE_S} s")

    @property
    def _port(self) -> int:
        return int(next(iter(self.demo.origins.values())).rpartition(":")[2])

    def _real(self, text: str) -> str:
        return text.replace(PORT, f":{self._port}")


def differs(step: Step, said: Said) -> str:
    """What of the shown output was not printed, in order; numbers and ids may be others. Empty when all of it was."""
    if step.writes:
        return ""
    real = [_plain(line) for line in said.out.split("\n")]
    for shown in step.expected:
        wanted = _plain(shown)
        if wanted in ("", "…"):
            continue
        pattern = re.compile(".*".join(re.escape(part.strip()) for part in wanted.split("…")))
        at = next((number for number, line in enumerate(real) if pattern.fullmatch(line)), None)
        if at is None:
            return f"not printed: {shown!r}\nprinted:\n{said.out}"
        real = real[at + 1 :]
    return ""


def _plain(line: str) -> str:
    return " ".join(re.sub("-{2,}", "--", _NUMBER.sub("0", line)).split())

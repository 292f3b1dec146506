"""Files that a reduce step makes for a snapshot: made once, taken over by later snapshots whose inputs are the same.

The step's commit record says what they hold. A file that is gone or damaged is made again, and must come out the same.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path

from corpus.app.full_disk import told_plainly
from corpus.app.project import Project
from corpus.errors import NonDeterministicStage, StoreError
from corpus.store.commits import CommitRecord, file_sha256
from corpus.store.local_objects import sealed

Scratch = Callable[[Project], AbstractContextManager[Path]]
"""Gives an empty folder on local disk that is gone afterwards."""
Make = Callable[[Sequence[Path], Path], dict[str, int]]
"""Writes the files at the paths given, with a scratch folder; returns how many rows of what they hold, for the record."""


def reduced(project: Project, stage: str, key: str, outs: Sequence[Path], scratch: Scratch, make: Make) -> None:
    """See that the files of a step stand whole at `outs` and are recorded. Raises NonDeterministicStage when they come out otherwise."""
    record = project.commits.get(stage, key)
    if record is not None and _taken_over(project, record, outs):
        return
    with scratch(project) as folder, ExitStack() as parts:
        rows = make([parts.enter_context(sealed(out)) for out in outs], folder)
    outputs = {project.layout.relative(out): file_sha256(out) for out in outs}
    if record is None:
        project.commits.put(CommitRecord(stage, key, outputs=outputs, rows=rows))
    elif sorted(record.outputs.values()) != sorted(outputs.values()):
        raise NonDeterministicStage(
            f"{stage} over the same inputs came out otherwise", str(outs[0]), "report it, with both files"
        )


def _taken_over(project: Project, record: CommitRecord, outs: Sequence[Path]) -> bool:
    """Whether a record's outputs are whole; then they stand at `outs` as well."""
    wanted = {out.name: out for out in outs}
    said = {Path(path).name: (path, digest) for path, digest in record.outputs.items()}
    return said.keys() == wanted.keys() and all(_stands(project, *said[name], out) for name, out in wanted.items())


def _stands(project: Project, path: str, digest: str, out: Path) -> bool:
    with suppress(StoreError):  # it is gone or damaged: made again
        source = project.file(path, digest)
        if source.is_file() and file_sha256(source) == digest:
            if source != out:
                with sealed(out) as part:
                    shutil.copyfile(source, part)
                project.files.publish({project.layout.relative(out): digest})
            return True
    return False


@contextmanager
def scratch_folder(project: Project) -> Iterator[Path]:
    """An empty folder on local disk that is gone afterwards."""
    project.layout.spill.mkdir(parents=True, exist_ok=True)
    with told_plainly(project.layout.root), tempfile.TemporaryDirectory(dir=project.layout.spill) as name:
        yield Path(name)

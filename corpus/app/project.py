"""One corpus folder, opened: its configuration, its layout, its logs. Opening writes nothing but `corpus.json`."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from corpus.config.check import wrong_engine, wrong_frontier, wrong_spread
from corpus.config.tree import Config
from corpus.errors import ServerGone, StoreError, UsageError
from corpus.store.commits import Commits
from corpus.store.consent_log import ConsentLog
from corpus.store.control_log import ControlLog
from corpus.store.files import Files, LocalFiles
from corpus.store.layout import Layout
from corpus.store.local_objects import LocalObjects
from corpus.store.objects import ObjectStore, put_same
from corpus.store.writers import remove_dead_parts


@dataclass(frozen=True, slots=True)
class Project:
    """What every verb works on. `layout.root` is where files are made: the folder itself, or the working folder of a bucket."""

    config: Config
    layout: Layout
    objects: ObjectStore
    files: Files

    @property
    def remote(self) -> bool:
        """Whether what is durable lies in a bucket. The frontier, the inbox and the locks are this machine's all the same."""
        return self.files.remote

    @property
    def commits(self) -> Commits:
        return Commits(self.objects, self.files.publish)

    @property
    def mail(self) -> LocalObjects:
        """Where batches between partition files travel: beside the frontier they belong to."""
        return LocalObjects(self.layout.root)

    def clean(self) -> None:
        """Remove temporary files that killed writers of this machine left. For stages to begin with; safe beside others."""
        remove_dead_parts(self.layout.root)

    def file(self, name: str, digest: str = "") -> Path:
        """A durable file by its name, as a path on this disk."""
        return self.files.local(name, digest)

    def uncached(self) -> Project:
        """The same, reading every small object from the store itself."""
        from corpus.store.s3_cache import CachedObjects

        return replace(self, objects=self.objects.inner) if isinstance(self.objects, CachedObjects) else self

    @property
    def control(self) -> ControlLog:
        return ControlLog(self.objects, self._tell_members if self.layout.server else None)

    def _tell_members(self, n: int) -> None:
        from corpus.store.fleet_members import tell_of_order

        with suppress(ServerGone):  # the order stands in the log, which every worker looks at by itself
            tell_of_order(self.layout.server, n)

    def consent_log(self, writer: str = "reader") -> ConsentLog:
        """The evidence ledger; only a writer with a name of its own may append."""
        return ConsentLog(self.objects, writer)


def open_project(config: Config, *, create: bool = True) -> Project:
    """Open (or start) the folder of a configuration. Raises NewerSchema, StoreError when it cannot be used."""
    if wrong := wrong_frontier(config.store.frontier):
        raise UsageError(wrong[0], "store.frontier", wrong[1])
    if bad := wrong_spread(config.store) or wrong_engine(config.engine):
        raise UsageError(bad[1], bad[0], bad[2])
    server = "" if config.store.frontier == "sqlite" else config.store.frontier
    leased = (config.store.lease, config.crawl.total_timeout)
    layout = Layout(config.root, config.local, server, leased, config.store.partition_files)
    if server and create:
        from corpus.store.frontier_pg_bound import bind

        bind(server, config.corpus.name, layout.spread)
    if config.in_bucket:
        project = _in_bucket(config, layout, create=create)
    else:
        project = Project(config, layout, LocalObjects(layout.root), LocalFiles(layout.root))
    if not create and not project.objects.exists("corpus.json"):
        raise StoreError(
            "there is no corpus here yet", where(project), "run corpus run (in a fleet: corpus worker) or corpus ingest first"
        )
    _make(layout.root)
    _make(layout.local)
    layout.check_schema(project.objects)
    return project


def where(project: Project) -> str:
    """Where a corpus lies, for messages."""
    return project.config.store.root if project.remote else str(project.layout.root)


def _in_bucket(config: Config, layout: Layout, *, create: bool) -> Project:
    """Before anything is begun in a bucket it is made sure that it can be trusted, and uploads that a crash left open are ended.

    Raises StoreError naming a store that ignores create-only.
    """
    from corpus.store.s3_cache import CachedObjects
    from corpus.store.s3_files import S3Files
    from corpus.store.s3_objects import S3Objects
    from corpus.store.s3_place import S3Place
    from corpus.store.s3_uploads import UploadJournal

    place = S3Place.parse(config.store.root, config.store.s3_endpoint, config.store.s3_region)
    objects = S3Objects(place, UploadJournal(layout.local / "uploads"))
    _of_one_root(layout, str(place), create=create)
    if create:
        objects.probe()
        objects.sweep_uploads()
    return Project(config, layout, CachedObjects(objects, layout.local / "cache"), S3Files(objects, layout.root))


def _of_one_root(layout: Layout, root: str, *, create: bool) -> None:
    """A frontier points into the archive of its own root, so a folder of this machine serves one root and no other."""
    objects = LocalObjects(layout.local)
    if not objects.exists("root.txt"):
        if create:
            put_same(objects, "root.txt", root.encode())
        return
    owner = objects.get("root.txt").decode()
    if owner != root:
        raise UsageError(
            f"this folder belongs to {owner}, and the corpus is in {root}", str(layout.local), "set another store.local"
        )


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"cannot be made: {error.strerror}", str(folder), "choose another store.root") from None

"""What a fleet would need is refused by name until it is there: nothing half works."""

from __future__ import annotations

from pathlib import Path

import pytest

from corpus.app.project import open_project
from corpus.config.load import load_config
from corpus.errors import UsageError


@pytest.mark.parametrize(
    ("setting", "where"),
    [
        ('store.frontier="mysql://localhost/corpus"', "store.frontier"),
        ('engine.address="10.0.0.7:6379"', "engine.address"),
    ],
)
def test_services_of_a_fleet_are_refused_before_anything_is_written(tmp_path: Path, setting: str, where: str) -> None:
    """Another database, and a cluster for an engine that has none, end with exit code 2, the key's name, and an untouched folder."""
    (tmp_path / "corpus.toml").write_text('[corpus]\nname = "x"\n')
    config = load_config(tmp_path / "corpus.toml", overrides=[setting], environment={})
    with pytest.raises(UsageError) as caught:
        open_project(config)
    assert caught.value.where == where
    assert caught.value.hint
    assert caught.value.exit_code == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["corpus.toml"]

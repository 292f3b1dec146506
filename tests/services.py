"""Services that some tests need: how to see whether one is here, and the line that installs it.

A test marked `needs("nginx")` skips on a machine without it and says how to get it. Where CORPUS_REQUIRE names the
service (as `.ci/run` does), the skip is a failure: a green CI must mean that the test ran.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Service:
    """`present()` looks, it never starts anything."""

    present: Callable[[], bool]
    install: str


def _program(name: str) -> Callable[[], bool]:
    return lambda: shutil.which(name) is not None or Path("/usr/sbin", name).exists()


def _package(name: str) -> Callable[[], bool]:
    return lambda: importlib.util.find_spec(name) is not None


SERVICES: dict[str, Service] = {
    "nginx": Service(_program("nginx"), "apt-get install nginx-light"),
    "postgres": Service(lambda: any(Path("/usr/lib/postgresql").glob("*/bin/initdb")), "apt-get install postgresql-15"),
    "chromium": Service(_program("chromium"), "apt-get install chromium"),
    "s3": Service(lambda: all(_package(name)() for name in ("boto3", "moto", "nanio")), "pip install -r requirements-dev.txt"),
    "docs": Service(_package("properdocs"), "pip install -r requirements-docs.txt"),
    "ray": Service(_package("ray"), "pip install -r requirements-ray.txt"),
    "notebooks": Service(
        lambda: all(_package(name)() for name in ("nbclient", "nbformat", "ipykernel")),
        "pip install nbclient nbformat ipykernel ipywidgets",
    ),
    "datatrove-filters": Service(
        lambda: all(_package(name)() for name in ("datatrove", "spacy", "tokenizers")),
        "pip install -r requirements-interop.txt (never datatrove[processing]: it brings a rival of fasttext-community)",
    ),
    "interop": Service(
        lambda: all(_package(name)() for name in ("datasets", "datatrove", "polars")), "pip install -r requirements-interop.txt"
    ),
}


def missing(name: str) -> str:
    """Why a test that needs a service cannot run here; empty when it can."""
    service = SERVICES[name]
    return "" if service.present() else f"needs {name}: {service.install}"


def required() -> frozenset[str]:
    """Services whose absence must fail."""
    return frozenset(filter(None, os.environ.get("CORPUS_REQUIRE", "").split(",")))

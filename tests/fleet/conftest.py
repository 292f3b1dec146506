"""The web, its server and one undisturbed run of a single machine, made once for each file of laws about fleets."""

from __future__ import annotations

from tests.laws.conftest import server, web, whole

__all__ = ["server", "web", "whole"]

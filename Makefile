# Everything a fresh machine needs: Python 3.11 or newer, git and make. `make demo` first, `make test` next.

SHELL := /bin/sh
PYTHON := $(shell for p in python3.13 python3.12 python3.11 python3; do \
	"$$p" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && { echo "$$p"; break; }; done)
VENV := .venv
APART := .venv-apart
PY := $(VENV)/bin/python
STAMP := $(VENV)/.installed
PYTEST := $(PY) -m pytest
FAST := tests/unit tests/laws tests/contract tests/conformance tests/sim
DOCS := python3.11-doc debian-handbook
MORE_DOCS := linux-doc-6.1 postgresql-doc-15

.DEFAULT_GOAL := help
.PHONY: help setup demo test docs interop fleet soak long bench bench-data lint clean peers bench-peers

help:
	@echo "make demo        crawl the bundled little web, offline, and end with a dataset in ./demo-corpus"
	@echo "make test        the fast suite"
	@echo "make docs        the documentation site, in build/docs; its reference is made from the code"
	@echo "make interop     other people's tools on our files"
	@echo "make fleet       several machines' worth of workers (needs PostgreSQL; skips without), and a Ray cluster of two nodes"
	@echo "make long        the slow tests, and a real documentation site from crawl to release"
	@echo "make soak        an hour of an endless crawl: no growth in memory, file handles or threads"
	@echo "make bench       each stage in CPU-seconds and bytes, as JSON lines"
	@echo "make bench-peers whole jobs beside Scrapy, Crawlee, trafilatura, datatrove, datasketch and bare loops"
	@echo "make bench-data  fetch and unpack the documentation that long and bench use (Debian, no root needed)"
	@echo "make lint        formatting, ruff, mypy"
	@echo "make clean       remove the environment, caches and the demo's folder"

setup: $(STAMP)

$(STAMP): requirements.txt requirements-dev.txt pyproject.toml
	@test -n "$(PYTHON)" || { echo "no Python 3.11 or newer with venv was found; on Debian: apt-get install python3 python3-venv" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install -q -r requirements.txt -r requirements-dev.txt -e .
	@touch $@

demo: $(STAMP)
	$(VENV)/bin/corpus demo

test: $(STAMP)
	$(PYTEST) $(FAST) -m "not slow" -n 2 --dist loadfile

docs: $(STAMP) $(VENV)/.docs
	$(VENV)/bin/properdocs build --strict
	@echo "build/docs/index.html"

$(VENV)/.docs: requirements-docs.txt
	$(VENV)/bin/pip install -q -r requirements-docs.txt
	@touch $@

interop: $(STAMP) $(VENV)/.interop $(APART)/.installed
	$(PYTEST) tests/interop -m "not slow"

$(VENV)/.interop: requirements-interop.txt
	$(VENV)/bin/pip install -q -r requirements-interop.txt
	@touch $@

# pywb replaces a module of ours, and DuckDB 1.5 would replace ours: both live apart
$(APART)/.installed: requirements-apart.txt
	$(PYTHON) -m venv $(APART)
	$(APART)/bin/pip install -q -r requirements-apart.txt
	@touch $@

fleet: $(STAMP) $(VENV)/.ray
	$(PYTEST) tests/fleet -m "not slow"

$(VENV)/.ray: requirements-ray.txt
	$(VENV)/bin/pip install -q -r requirements-ray.txt
	@touch $@

soak: $(STAMP)
	$(PY) -m tests.bench.soak --seconds 3600

long: $(STAMP) bench-data
	$(PYTEST) tests -m slow
	$(PY) -m corpus.testing.sites bench-data -- $(VENV)/bin/corpus run -c configs/docs-site.toml

bench: $(STAMP)
	$(VENV)/bin/corpus bench

peers: .venv-peers/.installed

.venv-peers/.installed: requirements-peers.txt
	$(PYTHON) -m venv .venv-peers
	.venv-peers/bin/pip install -q -r requirements-peers.txt
	@touch $@

# the promised size; about half an hour a round, so shorten it with HOSTS=20 ROUNDS=1
HOSTS := 200
ROUNDS := 3

bench-peers: $(STAMP) bench-data/.more peers
	$(VENV)/bin/corpus bench --peers --hosts $(HOSTS) --pages 30 --rounds $(ROUNDS)

bench-data/.more: bench-data/.unpacked
	mkdir -p bench-data/more
	cd bench-data/more && apt-get download $(MORE_DOCS)
	cd bench-data/more && for deb in *.deb; do dpkg -x "$$deb" tree || exit 1; done
	@touch $@

bench-data: bench-data/.unpacked

bench-data/.unpacked:
	@command -v apt-get >/dev/null && command -v dpkg >/dev/null || \
		{ echo "bench-data comes from Debian packages, and apt-get or dpkg is missing here; the bundled demo pages are used instead" >&2; exit 1; }
	mkdir -p bench-data
	cd bench-data && apt-get download $(DOCS)
	cd bench-data && for deb in *.deb; do dpkg -x "$$deb" tree || exit 1; done
	@touch $@

lint: $(STAMP)
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy --strict corpus

clean:
	rm -rf $(VENV) $(APART) .mypy_cache .ruff_cache .pytest_cache .hypothesis demo-corpus build dist
	find corpus tests -name __pycache__ -type d -prune -exec rm -rf {} +

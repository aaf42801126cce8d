# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

# Two workers; all Spark tests go to one of them, which holds the only session. A worker that dies ends the run: what it
# had not done would not be done by anybody.
PARALLEL := -n 2 --dist loadgroup --max-worker-restart 0

# The package with its compiled modules, and the tests of what is among them.
COMPILED := $(CURDIR)/out/compiled
RUNS_COMPILED := tests/protocol tests/scripts tests/wire tests/api tests/net tests/sim

.DEFAULT_GOAL := help
.PHONY: help setup java browser compiler demo paper docs test test-all test-compiled compiled check format mutants bench audit build lock clean

help:                ## this list
	@grep -E '^[a-z-]+: .*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(READY): requirements.lock pyproject.toml scripts/setup
	PYTHON=$(PYTHON) scripts/setup $(VENV)
	@touch $@

setup: $(READY)      ## create .venv with the pinned dependencies

java:                ## check for Java 17 or newer (Spark needs it), install it where we may
	@scripts/java

browser:             ## check for Chromium (the pages are tested in it), install it where we may
	@scripts/browser

compiler: setup      ## check for a C compiler (the compiled build is tested), install it where we may
	@scripts/compiler $(BIN)/python

demo: setup java     ## the main job, end to end
	$(BIN)/cubecast demo

paper: setup java    ## every claim of the papers evaluated, their systems compared; goes on where it was stopped: out/paper/report.html
	$(BIN)/cubecast reproduce --out out/paper || [ $$? -eq 1 ]
	$(BIN)/cubecast compare --out out/paper
	$(BIN)/cubecast report out/paper

test: setup java browser compiler ## everything but the slow tests, under 12 minutes on two cores
	$(BIN)/python -m pytest $(PARALLEL) -m "not slow"

test-all: setup java browser compiler ## the slow tests too
	$(BIN)/python -m pytest $(PARALLEL) --hypothesis-profile=exploring

test-compiled: compiled ## what runs on compiled modules, against those; the suite itself is for the sources
	PYTHONPATH=$(COMPILED) $(BIN)/python -m pytest $(PARALLEL) -m "not slow and not spark and not interpreted" $(RUNS_COMPILED)

check: setup         ## format, lint, types, tidy, fast tests: under a minute
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q -n 2 -m "not slow and not spark" tests/tidy tests/protocol tests/scripts tests/trace tests/wire

format: setup        ## rewrite the sources in the house format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/python scripts/wrap.py

docs: setup          ## the documentation as a site: out/docs/index.html; a warning fails
	$(BIN)/python -m sphinx -q -W --keep-going -b html -c docs/site . out/docs -d out/docs-cache

compiled: compiler   ## out/compiled: the package with what every frame passes through in C
	scripts/compiled $(BIN)/python $(COMPILED)

mutants: setup       ## plant faults one at a time and print who finds each; a survivor fails (hours)
	$(BIN)/python scripts/mutants.py

bench: setup java    ## side-by-side benchmarks; each prints its ratios
	$(BIN)/python -m bench

audit: setup         ## write out/sbom.json, hold requirements.lock against known vulnerabilities (asks the network)
	$(BIN)/python scripts/audit.py

build: compiler      ## wheels, pure and compiled, and source archive in out/dist, audited; where nobody can be asked that is said, not hidden
	$(BIN)/python scripts/audit.py || [ $$? -eq 3 ]
	$(BIN)/python -m hatchling build -d out/dist
	HATCH_BUILD_HOOK_ENABLE_CUSTOM=true $(BIN)/python -m hatchling build -t wheel -d out/dist

lock: setup          ## renew requirements.lock from pyproject.toml
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile pyproject.toml --all-extras --universal --no-emit-index-url --no-header --generate-hashes --quiet -o requirements.lock

clean:               ## remove what the commands above made
	rm -rf $(VENV) out .mypy_cache .ruff_cache .pytest_cache .hypothesis

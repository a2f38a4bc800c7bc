# The project's verbs. `make check` is what a change must pass; `make test` the rest.
PYTHON ?= python3
VENV ?= .venv
BIN ?= $(VENV)/bin
BENCH ?=
PEERS ?= floor,langgraph,burr,agno,ours
WORKLOADS ?= w1,w2,w3,w4,w5,w6,w7,w8,w10
ROUNDS ?= 3
MINUTES ?= 30
NODE ?= .node

.PHONY: help setup node check format lint types imports test docs golden screenshots bench soak coverage clean

help:  ## what there is
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/'

setup:  ## a virtual environment with everything the tests need, and the embedded model's weights
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	$(BIN)/agent-graph local setup

node:  ## the programs of others that judge the server (MCP Inspector, conformance suite), into NODE; needs npm
	@cmp -s tests/acceptance/package-lock.json $(NODE)/node_modules/installed.json || { \
		mkdir -p $(NODE) && cp tests/acceptance/package.json tests/acceptance/package-lock.json $(NODE) \
		&& npm ci --prefix $(NODE) --ignore-scripts --no-audit --no-fund --loglevel=error \
		&& cp tests/acceptance/package-lock.json $(NODE)/node_modules/installed.json; }

check: lint types imports  ## lint, types and who imports whom

format:  ## rewrite the code in the house's form
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

lint:  ## ruff, rules and form
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types:  ## mypy, strict, also as on Windows and on macOS
	$(BIN)/mypy
	$(BIN)/mypy --platform win32
	$(BIN)/mypy --platform darwin

imports:  ## layers, cycles, purity, homes
	$(BIN)/lint-imports

test:  ## all tests; AGENT_GRAPH_TEST_SIZE=full for the long ones
	$(BIN)/python -m pytest -q

docs:  ## docs and examples run, and agree with the code
	$(BIN)/python -m pytest -q tests/docs

golden:  ## rewrite the wire's reference files after a wanted change; read the diff
	AGENT_GRAPH_GOLDEN=write $(BIN)/python -m pytest -q tests/golden tests/docs/test_reference.py

screenshots:  ## the pictures of the console in docs/pictures; needs Chromium. Look at them
	$(BIN)/python -m tests.browser.screenshots

bench:  ## beside other engines, and which goals are met; BENCH=folder of the programs, PEERS_HOME=their environments
	@test -f "$(BENCH)/run_all.py" || { echo "BENCH=folder of the benchmark programs (run_all.py)"; exit 2; }
	rm -rf .bench && mkdir .bench  # the programs add to a file that is there
	$(BIN)/python -m compileall -q agent_graph tests/benchmarks  # as pip does for what it installs
	OURS=$(CURDIR)/tests/benchmarks/bench_ours.py OURS_PYTHON=$(abspath $(BIN))/python \
		$(PYTHON) $(BENCH)/run_all.py --peers $(PEERS) --only $(WORKLOADS) --rounds $(ROUNDS) --out $(CURDIR)/.bench/run.jsonl
	$(PYTHON) tests/benchmarks/goals.py .bench/run.jsonl

soak:  ## half an hour of mixed runs in one process, and whether it holds on to anything; MINUTES=30
	$(BIN)/python -m tests.soak.soak --minutes $(MINUTES)

coverage:  ## all tests with branch coverage: 100 % in core, 90 % elsewhere
	rm -f .coverage .coverage.*
	$(BIN)/python -m pytest -q --cov --cov-report=
	$(BIN)/coverage report --include='agent_graph/core/*' --fail-under=100
	$(BIN)/coverage report --omit='agent_graph/core/*' --fail-under=90

clean:  ## remove what the tools left
	rm -rf .bench .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache .node dist .coverage .coverage.*

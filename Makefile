# Needs Python 3.11+ and Java 17+; everything else goes into .venv and web/node_modules.
BIN := .venv/bin
LOCK := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --no-emit-index-url \
	--no-annotate --no-header --generate-hashes

# Hundreds of processes of tests import the same: compiled each time, that would take more time than the tests.
PYTEST := env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m pytest

# A Spark on each core that there is, up to four; the tests of a file stay together.
SIDE_BY_SIDE := --numprocesses logical --maxprocesses 4 --dist loadfile --no-loadscope-reorder

# On a busy machine a test may fail for lack of time: it runs once more, and the summary shows both results.
ONCE_MORE := --reruns 1 --max-suite-reruns 10 --rerun-show-tracebacks

.DEFAULT_GOAL := help
.PHONY: help run web test nightly verify bench lint docs lock clean setup java

help: ## Show this list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{printf "%-14s %s\n", $$1, $$2}'

# exec: a signal sent to make reaches the product itself, not a shell in between.
run: java setup web ## Start Penstock with the demo on PENSTOCK_PORT (8080); Ctrl-C stops it
	@exec $(BIN)/penstock up --demo

web: ## Build the web app into penstock/ui; with no Node on this machine, by that of a wheel
	@scripts/web.sh

test: java ## Run every test: of the web app, then the others, the fast ones first
	@scripts/beside.sh "set-up" scripts/setup.sh "web app: build and checks" "scripts/web.sh; scripts/web.sh check"
	@$(PYTEST) $(SIDE_BY_SIDE) $(ONCE_MORE) --durations 30

nightly: java setup web ## Run every test, those that kill and damage streams ten times as long
	@PENSTOCK_TEST_NIGHTLY=1 $(PYTEST) $(SIDE_BY_SIDE) --timeout 1800

verify: java setup ## Lint, types, layers, the audit of dependencies and the fast tests
	@scripts/beside.sh "style, types and layers" scripts/lint.sh "web app: checks" "scripts/web.sh check"
	@scripts/audit.sh
	@$(PYTEST) $(SIDE_BY_SIDE) -m "not slow" --durations 10

lint: setup ## Check style, types and layers
	@scripts/beside.sh "style, types and layers" scripts/lint.sh "web app: style and types" "scripts/web.sh lint"

bench: java setup ## Measure Penstock against its alternatives
	@scripts/setup.sh requirements-bench.lock
	@$(BIN)/python -m bench

docs: setup ## Write docs/reference/ and the API's types in web/ again from the code
	@$(BIN)/python -m penstock.cli.reference
	@scripts/web.sh types

lock: setup ## Resolve the dependencies again and pin them
	@$(LOCK) --upgrade --extra dev pyproject.toml -o requirements.lock
	@$(LOCK) --upgrade --extra bench -c requirements.lock pyproject.toml -o requirements-bench.lock
	@$(LOCK) --upgrade --group web -o requirements-web.lock
	@$(LOCK) --upgrade --group audit -o requirements-audit.lock

clean: ## Remove the environment, caches and builds (keeps .penstock, your data)
	@rm -rf .venv .venv-audit .venv.lock .web.lock web/node_modules penstock/ui build dist
	@rm -rf .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

setup:
	@scripts/setup.sh

java:
	@scripts/java.sh

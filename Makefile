# `make help` lists the targets. Everything runs in .venv, which the first target builds.

PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/pip --disable-pip-version-check
LIGHT_EXTRAS := cli geo h3 plot graphs service client otel postgres
SERVED := cli service postgres otel
WORKERS ?= 2
DATA ?= ../shared/data

.DELETE_ON_ERROR:
.PHONY: help install install-spark demo test test-full check format bench evidence pages docs release lock system-packages clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 18

# The stamp makes a second run quick; a changed lock or pyproject.toml brings a new install.
.venv/.installed: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "dphmm needs Python 3.11 or newer; set PYTHON=... to choose another one."; exit 1; }
	@echo "Building .venv (about a minute the first time)"
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(PIP) install -qq --require-hashes -r requirements.lock
	@$(PIP) install -qq --no-deps --no-build-isolation -e .
	@touch $@

.venv/.installed-spark: requirements-spark.lock .venv/.installed
	@$(PIP) install -qq --require-hashes -r requirements-spark.lock
	@touch $@

.venv/.installed-bench: requirements-bench.lock .venv/.installed
	@$(PIP) install -qq --require-hashes -r requirements-bench.lock
	@touch $@

.venv/.installed-release: requirements-release.lock .venv/.installed
	@$(PIP) install -qq --require-hashes -r requirements-release.lock
	@touch $@

install: .venv/.installed ## build .venv: the library, the light extras, the tools

install-spark: .venv/.installed-spark ## add Apache Spark to .venv (800 MB; needs a Java runtime)

demo: .venv/.installed ## show a small city, its policy and a day of private releases
	@$(BIN)/dphmm demo

test: .venv/.installed ## run the tests, the short forms
	@$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal

test-full: .venv/.installed ## run the tests, the slow ones and many more examples included
	@$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal --full

check: .venv/.installed ## check format, lint, types, that no file names a package registry, and that pages show results
	@$(BIN)/ruff format --check --quiet . || { echo "Run make format."; exit 1; }
	@$(BIN)/ruff check --quiet .
	@$(BIN)/oxlint --quiet src tests
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/python -m pytest -q tests/test_project.py -k "registry or lock"
	@$(BIN)/python scripts/include_results.py --check

format: .venv/.installed ## format the code and sort the imports
	@$(BIN)/ruff check --quiet --fix --select I .
	@$(BIN)/ruff format --quiet .

bench: .venv/.installed-bench ## measure and write bench/results.json; BENCH=hull runs one file, RESULTS=1 renews the pages
	@$(BIN)/python -m benchmarks.run $(BENCH) $(if $(RESULTS),--results docs/results); found=$$?; \
	  $(if $(RESULTS),$(BIN)/python scripts/include_results.py,true) && exit $$found

evidence: .venv/.installed ## measure every number of the documentation again (DATA=folder, QUICK=1, COMPARE=1 writes no page; FINAL=1 reads the locked people)
	@$(if $(FINAL),DPHMM_FINAL=1) $(BIN)/dphmm reproduce evidence $(if $(FINAL),--final) --data $(DATA) -o evidence --workers $(WORKERS) \
	  $(if $(QUICK),--quick,$(if $(COMPARE),--compare docs/results,--results docs/results))
	@$(if $(QUICK)$(COMPARE),true,$(BIN)/python scripts/include_results.py)

pages: .venv/.installed ## write the numbers of docs/results into the pages, and draw the rooms
	@$(BIN)/python scripts/include_results.py
	@$(BIN)/python -m scripts.architecture

docs: .venv/.installed ## build the documentation into site/VERSION, beside other versions
	@$(BIN)/sphinx-build -q -W --keep-going docs \
	  site/$$($(BIN)/python -c "import dphmm; print(dphmm.__version__)")

# TESTS="tests/test_stream.py" tries the wheel with some tests only.
TESTS ?= tests
release: .venv/.installed-release ## make dist/ for VERSION=1.2.3, try it in a new environment, publish nothing
	@$(BIN)/python scripts/release.py "$(VERSION)" "$(TESTS)"

# Hashes and no address: whoever installs chooses the package index.
COMPILE := $(BIN)/uv pip compile pyproject.toml --universal --generate-hashes --no-header \
  --no-emit-index-url --no-emit-find-links --quiet

lock: .venv/.installed ## renew the locks (UPGRADE=--upgrade takes the newest versions)
	@$(COMPILE) $(UPGRADE) $(LIGHT_EXTRAS:%=--extra %) --group dev -o requirements.lock
	@$(COMPILE) $(UPGRADE) $(SERVED:%=--extra %) -c requirements.lock -o requirements-service.lock
	@$(COMPILE) $(UPGRADE) --extra spark -c requirements.lock -o requirements-spark.lock
	@$(COMPILE) $(UPGRADE) --group bench -c requirements.lock -o requirements-bench.lock
	@$(COMPILE) $(UPGRADE) --group release -c requirements.lock -o requirements-release.lock

system-packages: ## install Chromium, PostgreSQL, Java and nginx with apt-get, or say what is missing
	@.ci/system-packages

clean: ## remove what the other targets made
	@rm -rf .venv .pytest_cache .ruff_cache .mypy_cache .hypothesis .schemathesis build dist site bench demo evidence
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

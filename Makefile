# One entry for people and for CI. Everything runs in .venv, made from the committed uv.lock.
SHELL := /bin/bash
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
TESTS ?=
CASES ?=
ONLY ?=
OBJECTS ?=
ROUNDS ?= 5

# uv trusts the certificates of the system, as pip does: a proxy that inspects TLS has its own certificate there.
# Older releases of uv read the second name.
export UV_SYSTEM_CERTS ?= 1
export UV_NATIVE_TLS ?= 1

# Without bytecode every worker of the tests, and every process that a test starts, would compile all modules again.
unexport PYTHONDONTWRITEBYTECODE

# Modules in the order of tests/conftest.py, each run by one worker.
PARALLEL := -n auto --dist loadscope --no-loadscope-reorder
# The tests that need neither servers, browsers nor other processes, and compute for seconds at most.
FUNCTIONS := -m "not (postgres or browser or server or subprocess or long)"
# The tests of commands with representative cases in the suite, and every case in `make nightly`; those of pages are the whole folder.
EVERY_CASE := $(addprefix tests/cli/test_,canaries.py snapshot_canaries.py signals.py next_commands.py packets.py own_canaries.py notifications.py)
# Property tests try examples that follow from the seed; elsewhere the same ones each time.
SEARCH := --hypothesis-profile=search --hypothesis-seed

.PHONY: help setup demo docs picture test test-all coverage check lint format types layers conformance bench apiserver helm promtool oracle kyverno-oracle fuzz kyverno nightly releases clean

help: ## what can be made
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  \1\t/' | expand -t 16

setup: $(VENV)/.ready ## the virtual environment with the locked dependencies

$(BIN)/uv: .ci/uv.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Assay needs Python 3.11 or newer; name one with: make PYTHON=python3.12 …" >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { echo "Python's venv module is missing; on Debian: apt-get install python3-venv" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement .ci/uv.txt
	@touch $@

$(VENV)/.ready: uv.lock pyproject.toml | $(BIN)/uv
	@$(BIN)/uv sync --locked --all-extras --quiet --python $(BIN)/python
	@touch $@

demo: setup ## make thirty nights of scans of the example cluster, scan it, and write its report
	@$(BIN)/python examples/demo.py

docs: setup ## the documentation as a site in build/docs; a broken link fails; writes docs/cli.md from the help texts, the configuration's keys and schema from the flags, the columns of findings and problems, the README of the chart, and the alerts of Prometheus
	@$(BIN)/python -m scripts.generate_cli_reference
	@$(BIN)/python -m scripts.generate_configuration
	@$(BIN)/python -m scripts.generate_columns
	@$(BIN)/python -m scripts.generate_chart
	@$(BIN)/python -m scripts.generate_alerts
	@$(BIN)/mkdocs build --strict --quiet
	@echo "build/docs/index.html"

picture: demo ## take the picture of the README anew; needs Chromium
	@$(BIN)/python -m scripts.take_picture

test: setup ## the tests of functions, five minutes: without servers, browsers, other processes and long computations
	@$(BIN)/python -m pytest $(PARALLEL) -q $(FUNCTIONS)

test-all: setup ## the whole test suite; lists skipped tests and how to enable them
	@$(BIN)/python -m pytest $(PARALLEL) -q

coverage: setup ## the share of scanner/ that the tests execute: make coverage [TESTS=tests/cel]; pages in build/coverage
	@$(BIN)/coverage erase
	@$(BIN)/coverage run -m pytest $(PARALLEL) -q --hypothesis-profile=ci $(TESTS) # measuring is slow: no deadlines
	@$(BIN)/coverage combine --quiet
	@$(BIN)/coverage html --quiet
	@$(BIN)/coverage report --skip-covered --sort=-cover | tail -n 20

check: lint types layers test-all ## what CI runs

lint: setup ## ruff, format included
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

format: setup ## let ruff rewrite what it can
	@$(BIN)/ruff check --fix-only --quiet .
	@$(BIN)/ruff format .

types: setup ## mypy, strict
	@$(BIN)/mypy

layers: setup ## imports point down only
	@$(BIN)/lint-imports

oracle: ## build the Go program that evaluates with Kubernetes' own CEL; prints its path
	@.ci/oracle

kyverno-oracle: ## build the Go program that is linked with a release of Kyverno: make kyverno-oracle [RELEASE=1.19]; prints its path
	@.ci/kyverno-oracle $(or $(RELEASE),1.19)

kyverno: setup ## compare random policies, exceptions, expressions and webhooks on a real API server with releases of Kyverno: make kyverno [RELEASES="1.18 1.19"] [KYVERNO_POLICIES=10000] [SECONDS=600] [WEBHOOKS=1000] [SEED=n]
	@for release in $(or $(RELEASES),1.18 1.19); do \
	  $(BIN)/python -m tests.oracle.kyverno.comparison --release $$release --policies $(or $(KYVERNO_POLICIES),10000) $(if $(SEED),--seed $(SEED)) && \
	  $(BIN)/python -m tests.oracle.kyverno.expressions --release $$release --seconds $(or $(SECONDS),600) $(if $(SEED),--seed $(SEED)) && \
	  KUBEBUILDER_ASSETS="$$(.ci/apiserver)" $(BIN)/python -m tests.oracle.kyverno.webhooks --release $$release --policies $(or $(WEBHOOKS),1000) $(if $(SEED),--seed $(SEED)) || exit 1; done

fuzz: setup ## compare random expressions with Kubernetes' own CEL: make fuzz [SECONDS=600] [SEED=n]
	@$(BIN)/python -m tests.oracle.fuzz --seconds $(or $(SECONDS),600) $(if $(SEED),--seed $(SEED))

nightly: setup $(if $(VERSIONS),releases) ## what takes long: older servers (VERSIONS="1.30 1.32"), default rules that are missing, large random sets, mutations, pods under Pod Security and 2,000 manifests of assay check against a real API server, 30 changes of assay preview with 500 workloads of real controllers, Jobs, tests and pages of the chart with real controllers, 200 scans of a changing cluster, scans killed at random moments, random histories, new examples of the property tests, all those of the slowest, every case of secrets, signals and pages, then make fuzz and make kyverno; SEED=n or a new one
	@$(BIN)/python -m scripts.check_default_rules
	@seed=$(or $(SEED),$$(date +%Y%m%d)); echo "SEED=$$seed"; \
	$(BIN)/python -m pytest $(PARALLEL) -q $(FUNCTIONS) $(SEARCH)=$$seed && \
	KILLS=$(or $(KILLS),60) $(BIN)/python -m pytest -q tests/cli/test_interruption.py && \
	EVERY_EXAMPLE=1 $(BIN)/python -m pytest $(PARALLEL) -q tests/browser $(EVERY_CASE) && \
	API_EXAMPLES=$(or $(API_EXAMPLES),300) $(BIN)/python -m pytest -q tests/web/api/test_generated.py $(SEARCH)=$$seed && \
	EVERY_EXAMPLE=1 $(BIN)/python -m pytest -q tests/cluster/test_spoiled.py tests/scan/test_reconciled.py tests/store/test_grouped_problems.py \
	  tests/store/test_only_seeing_fixes.py tests/store/test_open_workloads.py tests/store/test_population.py tests/store/test_problem_groups.py tests/store/test_retention.py tests/store/test_views.py \
	  tests/preview tests/web/api/test_hostile.py tests/web/api/test_paging.py $(SEARCH)=$$seed && \
	REPLAYS=$(or $(REPLAYS),5000) $(BIN)/python -m pytest -q tests/store/test_replay.py $(SEARCH)=$$seed && \
	KUBEBUILDER_ASSETS="$$(.ci/apiserver)" RANDOM_SEED=$$seed RANDOM_POLICIES=$(or $(POLICIES),520) RANDOM_BATCH=26 \
	  REFUSALS=all $(BIN)/python -m pytest -q -s tests/integration/test_random.py tests/integration/test_refusals.py && \
	KUBEBUILDER_ASSETS="$$(.ci/apiserver)" ASSAY_TEST_HELM="$$(.ci/helm)" LONG_JOBS=1 DATABASE_AWAY=$(or $(DATABASE_AWAY),300) $(BIN)/python -m pytest -q tests/integration/controllers && \
	KUBEBUILDER_ASSETS="$$(.ci/apiserver)" $(BIN)/python -m tests.integration.soak --scans $(or $(SCANS),200) && \
	KUBEBUILDER_ASSETS="$$(.ci/apiserver)" $(BIN)/python -m tests.integration.pod_security --seed $$seed && \
	KUBEBUILDER_ASSETS="$$(.ci/apiserver)" $(BIN)/python -m tests.integration.checked --manifests $(or $(MANIFESTS),2000) --batches 8 --seed $$seed && \
	KUBEBUILDER_ASSETS="$$(.ci/apiserver)" $(BIN)/python -m tests.integration.previewed --workloads $(or $(WORKLOADS),500) --changes $(or $(CHANGES),30) --seed $$seed && \
	KUBEBUILDER_ASSETS="$$(.ci/apiserver)" $(BIN)/python -m tests.integration.fuzz --seed $$seed && $(MAKE) fuzz SEED=$$seed && \
	$(MAKE) kyverno SEED=$$seed

releases: setup ## the rules of older releases against their servers: make releases VERSIONS="1.30 1.32 1.34" [SEED=n] [EXPRESSIONS=400]
	@servers=""; for release in $(VERSIONS); do servers="$$servers $$(.ci/apiserver-of $$release)" || exit 1; done; \
	RELEASES="$$servers" RELEASE_SEED=$(or $(SEED),$$(date +%Y%m%d)) RELEASE_EXPRESSIONS=$(or $(EXPRESSIONS),400) \
	  $(BIN)/python -m pytest -q -s tests/integration/test_releases.py

conformance: setup ## recorded verdicts of real servers: make conformance [CASES=DIR] [ONLY=NAME] [REPLAYS=1]
	@$(BIN)/python -m tests.conformance $(if $(CASES),--cases $(CASES)) $(if $(ONLY),--only $(ONLY)) $(if $(REPLAYS),--replays)

bench: setup ## measure one row of benchmarks/README.md: make bench ROW=n [OBJECTS=20000,100000] [ROUNDS=5]
	@OBJECTS=$(OBJECTS) ROUNDS=$(ROUNDS) $(BIN)/python -m benchmarks $(ROW)

apiserver: ## build kube-apiserver, kube-controller-manager and etcd for the integration tests; prints KUBEBUILDER_ASSETS
	@.ci/apiserver

helm: ## build helm and kustomize for the tests of deploy/; prints ASSAY_TEST_HELM
	@.ci/helm

promtool: ## build promtool and the Pushgateway of the tests; prints ASSAY_TEST_PROMETHEUS
	@.ci/promtool

clean: ## remove what was built
	@rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage*

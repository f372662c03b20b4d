# What people and CI run. `make help` explains the targets.
#
# Two profiles: `dev` for everything under test (quick to build, overflow checks on), `release` for what is measured,
# compared with Helm or shown (`demo`, `conformance`, `bench`), since there the speed is the point or is waited for.
# All programs of a profile are built by one call of Cargo: separate calls would choose other features of the
# dependencies, and build them twice.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

CARGO ?= cargo
PYTHON ?= python3
# Where slow things are kept between runs and clones: control planes, Helm, tools.
CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/emco
TARGET := $(or $(CARGO_TARGET_DIR),target)
RELEASE := $(TARGET)/release
# The folder with the corpus of real charts, for `conformance`.
CHARTS ?= $(EMCO_CHARTS)
# For `fuzz`.
RUNS ?= 1000000
FUZZ_TARGETS := $(basename $(notdir $(wildcard controllers/helm/fuzz/targets/*.rs)))

CARGO_DENY_VERSION := 0.20.2
MDBOOK_VERSION := 0.5.4
CARGO_FUZZ_VERSION := 0.13.2
PYYAML_VERSION := 6.0.2
CARGO_DENY := $(CACHE)/tools/cargo-deny-$(CARGO_DENY_VERSION)/bin/cargo-deny
MDBOOK := $(CACHE)/tools/mdbook-$(MDBOOK_VERSION)/bin/mdbook
CARGO_FUZZ := $(CACHE)/tools/cargo-fuzz-$(CARGO_FUZZ_VERSION)/bin/cargo-fuzz
PYYAML := $(CACHE)/tools/pyyaml-$(PYYAML_VERSION)

.PHONY: help
help: ## Explain the targets.
	@echo 'usage: make TARGET'
	@echo
	@sed -nE 's/^([a-z%-]+):.*## (.*)/\1\t\2/p' Makefile | while IFS=$$'\t' read -r target text; do printf '  %-16s %s\n' "$$target" "$$text"; done
	@echo
	@echo 'The first run of demo, test, e2e, conformance or bench builds Kubernetes and etcd from source (about five'
	@echo 'minutes on two cores) and keeps them in $(CACHE).'


.PHONY: build
build: ## Build emco-operator, emco-helm and emco-e2e (release).
	$(CARGO) build --release -p emco-operator -p emco-helm -p emco-e2e

.PHONY: fmt
fmt: ## Format all Rust code.
	$(CARGO) fmt --all

.PHONY: lint
lint: ## Check formatting and run clippy, warnings are errors.
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings

.PHONY: generate
generate: ## Write the generated files (config/crd) anew.
	$(CARGO) run -q -p emco-crds --example crdgen -- config/crd

.PHONY: check-generated
check-generated: ## Fail when a generated file is not as `make generate` would write it.
	@fresh=$$(mktemp -d); trap 'rm -rf "$$fresh"' EXIT; \
	$(CARGO) run -q -p emco-crds --example crdgen -- "$$fresh"; \
	diff -r "$$fresh" config/crd || { echo 'config/crd is not fresh: run `make generate`' >&2; exit 1; }; \
	echo 'generated files are fresh'


.PHONY: test
test: ## Everything: format, clippy, generated files, all tests. Ends with "N passed, N failed".
	@$(PYTHON) .ci/all_tests.py

.PHONY: e2e
e2e: ## Only the tests on real control planes.
	@$(PYTHON) .ci/all_tests.py e2e

.PHONY: audit
audit: $(CARGO_DENY) ## Check licences, banned crates and sources of all dependencies.
	$(CARGO_DENY) --workspace check licenses bans sources

.PHONY: advisories
advisories: $(CARGO_DENY) ## Check dependencies against the advisory database (fetched from the internet).
	$(CARGO_DENY) --workspace check advisories

.PHONY: conformance
conformance: $(PYYAML)/done ## Compare with real Helm over real charts: make conformance CHARTS=DIR.
	@[ -n "$(CHARTS)" ] || { echo 'conformance needs the corpus of real charts: make conformance CHARTS=DIR, or set EMCO_CHARTS' >&2; exit 1; }
	@[ -f "$(CHARTS)/compare.py" ] || { echo 'there is no compare.py in $(CHARTS): CHARTS names the folder of the corpus of real charts' >&2; exit 1; }
	@$(MAKE) build
	@echo 'rendering every chart of the corpus as Helm does'
	PYTHONPATH=$(PYYAML) $(PYTHON) $(CHARTS)/compare.py --cmd "$(RELEASE)/emco-helm template myrel --namespace myns --include-crds --kube-version 1.32.0"
	@echo 'deploying real charts on real control planes'
	$(RELEASE)/emco-e2e conformance --charts "$(CHARTS)"


.PHONY: demo
demo: build ## One application on three real control planes, live. EMCO_DEMO_APPS=DIR deploys a folder of packaged charts.
	@$(RELEASE)/emco-e2e demo --operator $(RELEASE)/emco-operator

.PHONY: bench
bench: bench-spine bench-helm ## All benchmarks; results in target/bench.

bench-%: build ## One benchmark, such as bench-spine or bench-helm; writes target/bench/AREA.json.
	$(RELEASE)/emco-e2e bench $*

.PHONY: bench-helm
bench-helm: build
	@[ -n "$(CHARTS)" ] || { echo 'bench-helm needs the corpus of real charts: make bench-helm CHARTS=DIR, or set EMCO_CHARTS' >&2; exit 1; }
	@helm=$$($(RELEASE)/emco-e2e programs helm); \
	HELM="$${helm##* }" EMCO_CHARTS="$(abspath $(CHARTS))" $(CARGO) bench -p emco-helm --bench helm

.PHONY: soak
soak: ## Not there yet: says so and fails.
	@echo 'there is no soak test yet' >&2; exit 1

.PHONY: fuzz
fuzz: $(CARGO_FUZZ) ## Fuzz emco-helm with RUNS inputs per target (1,000,000 unless set); needs a nightly toolchain.
	@rustup run nightly rustc --version || { echo 'fuzzing needs a nightly toolchain: rustup toolchain install nightly' >&2; exit 1; }
	@[ -n "$(FUZZ_TARGETS)" ] || { echo 'there are no fuzz targets in controllers/helm/fuzz/targets' >&2; exit 1; }
	@# Our code has no `unsafe` that a sanitizer would watch. Found inputs land where `make test` replays them.
	cd controllers/helm; for target in $(FUZZ_TARGETS); do \
	  mkdir -p "fuzz/corpus/$$target"; \
	  PATH="$(dir $(CARGO_FUZZ)):$$PATH" $(CARGO) +nightly fuzz run --fuzz-dir fuzz --sanitizer none "$$target" \
	    "$$PWD/fuzz/corpus/$$target" "$$PWD/tests/fuzz_corpus/$$target" -- \
	    -runs=$(RUNS) -max_len=16384 -timeout=20 -rss_limit_mb=1024 -reload=0 -print_final_stats=1 \
	    -artifact_prefix="$$PWD/tests/fuzz_corpus/$$target/"; \
	done


.PHONY: docs
docs: $(MDBOOK) ## Build the book (docs/book) and the documentation of the crates (target/doc).
	$(MDBOOK) build docs
	$(CARGO) doc --workspace --no-deps

.PHONY: clean-cache
clean-cache: ## Remove built control planes, Helm and tools.
	rm -rf "$(CACHE)"

# Tools, each installed once into the cache. In a folder of their own for building, which is removed afterwards.
$(CARGO_DENY):
	@echo 'installing cargo-deny $(CARGO_DENY_VERSION), once; this takes some minutes'
	CARGO_TARGET_DIR=$(CACHE)/tools/building $(CARGO) install --locked --version $(CARGO_DENY_VERSION) --root $(CACHE)/tools/cargo-deny-$(CARGO_DENY_VERSION) cargo-deny
	@rm -rf $(CACHE)/tools/building

$(MDBOOK):
	@echo 'installing mdbook $(MDBOOK_VERSION), once; this takes some minutes'
	CARGO_TARGET_DIR=$(CACHE)/tools/building $(CARGO) install --locked --version $(MDBOOK_VERSION) --no-default-features --features search --root $(CACHE)/tools/mdbook-$(MDBOOK_VERSION) mdbook
	@rm -rf $(CACHE)/tools/building

$(CARGO_FUZZ):
	@echo 'installing cargo-fuzz $(CARGO_FUZZ_VERSION), once'
	CARGO_TARGET_DIR=$(CACHE)/tools/building $(CARGO) install --locked --version $(CARGO_FUZZ_VERSION) --root $(CACHE)/tools/cargo-fuzz-$(CARGO_FUZZ_VERSION) cargo-fuzz
	@rm -rf $(CACHE)/tools/building

$(PYYAML)/done:
	PIP_ROOT_USER_ACTION=ignore $(PYTHON) -m pip install --quiet --disable-pip-version-check --upgrade --target $(PYYAML) PyYAML==$(PYYAML_VERSION)
	@touch $@

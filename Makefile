# What people and CI run. `make help` explains the targets.
#
# Two profiles: `dev` for everything under test and for what runs the tests (quick to build, overflow checks on), `release` for
# what is shipped or measured, since there the speed is the point. What `demo` shows and `conformance` compares with Helm is of `dev`,
# which optimizes the rendering (Cargo.toml): to build the other takes longer than it saves.
# All programs of a profile are built by one kind of call of Cargo: others would choose other features of the dependencies, and
# build them twice.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

CARGO ?= cargo
PYTHON ?= python3
# Where slow things are kept between runs and clones: control planes, Helm, tools.
CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/emco
TARGET := $(or $(CARGO_TARGET_DIR),target)
# A target has to be named, or the flags of static programs would be used for what runs at build time, too.
HOST := $(shell rustc -vV | sed -n 's/^host: //p')
# Architectures are called as container engines and Go call them.
TRIPLE_amd64 := x86_64-unknown-linux-gnu
TRIPLE_arm64 := aarch64-unknown-linux-gnu
NATIVE := $(if $(findstring aarch64,$(HOST)),arm64,amd64)
ARCH ?= $(NATIVE)
TRIPLE := $(TRIPLE_$(ARCH))
RELEASE := $(TARGET)/$(HOST)/release
VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
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
	@echo 'The first run of demo, test, e2e, conformance or bench builds Kubernetes and etcd from source (a quarter of an hour'
	@echo 'on two cores beside other builds) and keeps them in $(CACHE).'


# Programs are built as they are shipped: without shared libraries, so that what is measured and compared is what runs in a
# container, and is built once. Names are resolved by a library of our own, not by the C library, which would load plug-ins for it.
# Random numbers come of the system call: the usual way looks it up in shared libraries, and falls back to a device file, which an
# empty image does not have.
COMMIT := $(shell git describe --always --abbrev=12 --exclude='*' --dirty=-changed 2>/dev/null)
# Another architecture takes a compiler for its C code. Kernels of arm64 have pages of up to 64 KiB, which the allocator has to
# know when it is built.
CROSS_amd64 := x86_64-linux-gnu-
CROSS_arm64 := aarch64-linux-gnu-
CROSS := $(if $(filter-out $(NATIVE),$(ARCH)),$(CROSS_$(ARCH)))
CROSS_ENV := $(if $(CROSS),CARGO_TARGET_$(shell echo $(TRIPLE) | tr a-z- A-Z_)_LINKER=$(CROSS)gcc)
STATIC := env -u RUSTC_WORKSPACE_WRAPPER RUSTFLAGS='-C target-feature=+crt-static --cfg getrandom_backend="linux_getrandom"' \
  EMCO_COMMIT=$(COMMIT) $(CROSS_ENV) $(if $(filter arm64,$(ARCH)),JEMALLOC_SYS_WITH_LG_PAGE=16) $(CARGO)
SHIPPED := -p emco-operator -p emco-helm
PROGRAMS := emco-operator kubectl-emco emco-helm
.PHONY: build
build: ## Build emco-operator, kubectl-emco and emco-helm (release, static) into target/image; ARCH=arm64 for that.
	@[ -n "$(TRIPLE)" ] || { echo 'ARCH is amd64 or arm64, not $(ARCH)' >&2; exit 1; }
	@[ -z "$(CROSS)" ] || command -v $(CROSS)gcc >/dev/null || { echo 'there is no $(CROSS)gcc: install a cross compiler and C library for $(ARCH) (Debian: crossbuild-essential-$(ARCH))' >&2; exit 1; }
	@[ -z "$(CROSS)" ] || rustup target add $(TRIPLE)
	$(STATIC) build --release --target $(TRIPLE) $(SHIPPED)
	@mkdir -p target/image/$(ARCH)
	@# With the names of functions, without those of lines: a tenth of the size. Whoever reads one has all of the old or the new,
	@# and what is the same already is not touched: tar refuses a file that is replaced while it is read.
	@for program in $(PROGRAMS); do \
	  at="target/image/$(ARCH)/$$program"; \
	  $(CROSS)strip --strip-debug -o "$$at.$$$$" "$(TARGET)/$(TRIPLE)/release/$$program"; \
	  if cmp -s "$$at.$$$$" "$$at"; then rm "$$at.$$$$"; else mv "$$at.$$$$" "$$at"; fi; \
	  [ -n "$(CROSS)" ] || ln -sf "$(ARCH)/$$program" "target/image/$$program"; \
	done

.PHONY: static
static: build ## The same: everything a container image is made of (Containerfile).

IMAGE ?= emco-operator:$(VERSION)
ARCHES ?= $(NATIVE)
ENGINE ?= $(firstword $(notdir $(foreach name,podman buildah docker,$(shell command -v $(name) 2>/dev/null))))
PLATFORMS := $(shell echo $(ARCHES:%=linux/%) | tr ' ' ,)
LABELS := --label org.opencontainers.image.version=$(VERSION) --label org.opencontainers.image.revision=$(COMMIT)

.PHONY: image
image: ## Build the container image IMAGE for ARCHES ("amd64 arm64") with podman, buildah or docker; PUSH=yes pushes it.
	@[ -n "$(ENGINE)" ] || { echo 'there is no podman, buildah or docker: install one, or name it (ENGINE=PATH)' >&2; exit 1; }
	@for arch in $(ARCHES); do $(MAKE) build ARCH=$$arch; done
ifeq ($(notdir $(ENGINE)),docker)
	$(ENGINE) buildx build -f Containerfile --platform $(PLATFORMS) $(LABELS) --tag "$(IMAGE)" $(if $(PUSH),--push,--load) .
else
	@# A list of images grows by each build; this one is made anew.
	@$(ENGINE) manifest rm "$(IMAGE)" >/dev/null 2>&1 || true
	$(ENGINE) build -f Containerfile --platform $(PLATFORMS) $(LABELS) --manifest "$(IMAGE)" .
	$(if $(PUSH),$(ENGINE) manifest push --all "$(IMAGE)" "docker://$(IMAGE)")
endif

# Where the archives of a release will be: the manifest for krew names them.
DIST_URL ?= https://emco.example.com/releases/v$(VERSION)
DIST := target/dist
# The same input makes the same bytes.
ARCHIVE := tar --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 -cz

.PHONY: dist
dist: ## What a release consists of beside the image, in target/dist: plug-in for ARCHES, krew's manifest, charts, lists, sums.
	@for arch in $(ARCHES); do $(MAKE) build ARCH=$$arch; done
	@rm -rf $(DIST); mkdir -p $(DIST)
	@for arch in $(ARCHES); do \
	  $(ARCHIVE) -f $(DIST)/kubectl-emco_linux_$$arch.tar.gz -C target/image/$$arch kubectl-emco -C "$(CURDIR)" LICENSE; \
	done
	@for chart in emco emco-crds; do $(ARCHIVE) -f $(DIST)/$$chart-$(VERSION).tgz -C charts $$chart; done
	@$(PYTHON) config/krew/manifest.py $(VERSION) $(DIST_URL) $(DIST) > $(DIST)/emco.yaml
	@printf '%s\n' "$(IMAGE)" > $(DIST)/images.txt
	@cd $(DIST) && sha256sum -- * > SHA256SUMS && cat SHA256SUMS

.PHONY: fmt
fmt: ## Format all Rust code.
	$(CARGO) fmt --all

.PHONY: lint
lint: ## Check formatting and run clippy, warnings are errors.
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings

# Our own crates are linted while they are built for tests: a run of clippy by itself would go through all libraries once more.
# What is shipped is not built so, for clippy turns some optimizations off. (How cargo-clippy hands its arguments over.)
LINTED := RUSTC_WORKSPACE_WRAPPER=clippy-driver CLIPPY_ARGS='-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__'
# All programs of the profile `dev`. An example is among them, so that libraries have the features that tests want of them:
# else they would be built once more for the tests.
BINS := $(LINTED) $(CARGO) build --workspace --bins --example crdgen

# Writes into the folder $(1) what is generated: the kinds, their pages of the book, the resources of rights and policies, the page of
# all commands, the health checks for Argo CD, the alerts for the Prometheus operator, and the chart as plain manifests for those who have no Helm.
define generate
$(BINS); \
$(TARGET)/debug/examples/crdgen "$(1)"; \
$(TARGET)/debug/kubectl-emco __reference > "$(1)/docs/reference/cli.md"; \
mkdir -p "$(1)/config/operator" "$(1)/config/observability"; \
{ printf '%s\n' '# Generated by `make generate` from rules.yaml. Do not edit.' 'apiVersion: monitoring.coreos.com/v1' \
    'kind: PrometheusRule' 'metadata:' '  name: emco' '  labels:' '    app.kubernetes.io/part-of: emco' 'spec:'; \
  sed -e '/^#/d' -e 's/^/  /' config/observability/rules.yaml; } > "$(1)/config/observability/prometheusrule.yaml"; \
{ echo '# Generated by `make generate` from charts/emco. Do not edit.'; \
  $(TARGET)/debug/emco-helm template emco charts/emco --namespace emco-system --kube-version 1.33.0 --set policies.holdUninstall=false; } > "$(1)/config/operator/operator.yaml"
endef
GENERATED := config/crd charts/emco-crds/templates docs/reference config/operator/operator.yaml \
  charts/emco/templates/_kinds.tpl \
  config/observability/prometheusrule.yaml config/argocd/argocd-cm.yaml

.PHONY: generate
generate: ## Write the generated files (kinds, their chart and reference, commands, plain manifests) anew.
	@$(call generate,.)

.PHONY: check-generated
check-generated: ## Fail when a generated file is not as `make generate` would write it.
	@fresh=$$(mktemp -d); trap 'rm -rf "$$fresh"' EXIT; \
	$(call generate,$$fresh); \
	for path in $(GENERATED); do \
	  diff -r "$$fresh/$$path" "$$path" || { echo "$$path is not fresh: run \`make generate\`" >&2; exit 1; }; \
	done; \
	echo 'generated files are fresh'


.PHONY: test
test: ## Everything: format, clippy, generated files, all tests but soak. Ends with "N passed, N failed".
	@$(LINTED) $(PYTHON) -B .ci/all_tests.py

.PHONY: check
check: ## Before each commit: format, clippy, and the unit tests of what changed. Under two minutes from a warm tree.
	@$(PYTHON) -B .ci/check.py

.PHONY: e2e
e2e: ## Only the tests on real control planes.
	@$(LINTED) $(PYTHON) -B .ci/all_tests.py e2e

.PHONY: audit
audit: $(CARGO_DENY) ## Check licences, banned crates and sources of all dependencies.
	$(CARGO_DENY) --workspace check licenses bans sources

.PHONY: advisories
advisories: $(CARGO_DENY) ## Check dependencies against the advisory database (fetched from the internet).
	$(CARGO_DENY) --workspace check advisories

# The corpus' compare.py reads YAML with it.
conformance soak: $(PYYAML)/done
conformance soak: export PYTHONPATH := $(PYYAML)
conformance soak: export PYTHON := $(PYTHON)

.PHONY: conformance
conformance: ## Compare with real Helm over real charts: make conformance CHARTS=DIR; ALL=yes upgrades all, not a third.
	@[ -n "$(CHARTS)" ] || { echo 'conformance needs the corpus of real charts: make conformance CHARTS=DIR, or set EMCO_CHARTS' >&2; exit 1; }
	@[ -f "$(CHARTS)/compare.py" ] || { echo 'there is no compare.py in $(CHARTS): CHARTS names the folder of the corpus of real charts' >&2; exit 1; }
	@$(BINS)
	@# Each corpus is unpacked into a folder of its own.
	@corpus=$$(cat "$(CHARTS)"/*.tar.xz | sha256sum | cut -c1-16); export CHART_CORPUS_CACHE="$${CHART_CORPUS_CACHE:-$(CACHE)/charts/$$corpus}"; \
	  $(TARGET)/debug/emco-e2e conformance --charts "$(CHARTS)" $(if $(ALL),--all)


.PHONY: demo
demo: ## One application on three real control planes, live. EMCO_DEMO_APPS=DIR deploys a folder of packaged charts.
	@$(BINS)
	@$(TARGET)/debug/emco-e2e demo --operator $(abspath $(TARGET))/debug/emco-operator

.PHONY: bench
bench: bench-spine bench-store bench-hostile bench-helm bench-user bench-lifecycle bench-tenancy bench-intents bench-traffic bench-dashboard bench-git bench-fleet ## All benchmarks; results in target/bench.

# What measures is optimized as what is measured. (Its own build is slow, and needed for nothing else.)
.PHONY: build-bench
build-bench: build
	$(STATIC) build --release --target $(HOST) $(SHIPPED) -p emco-e2e

bench-%: build-bench ## One benchmark, such as bench-spine or bench-helm; writes target/bench/AREA.json.
	$(RELEASE)/emco-e2e bench $*

.PHONY: bench-user
bench-user: build-bench ## What people wait for, in target/bench/user.json; fails when a goal is missed.
	$(RELEASE)/emco-e2e bench user

.PHONY: bench-lifecycle
bench-lifecycle: build-bench ## What apps and approvals wait for, in target/bench/lifecycle.json; fails when a goal is missed.
	$(RELEASE)/emco-e2e bench lifecycle

.PHONY: bench-tenancy
bench-tenancy: build-bench ## How soon logical clouds are ready, in target/bench/tenancy.json; fails when a goal is missed.
	$(RELEASE)/emco-e2e bench tenancy

.PHONY: bench-intents
bench-intents: build-bench ## What edits of intents cost, in target/bench/intents.json: patches on one core, plans of 10,000 clusters.
	$(RELEASE)/emco-e2e bench intents

.PHONY: bench-traffic
bench-traffic: build-bench ## What traffic intents cost, in target/bench/traffic.json: 20 servers with 60 clients on 1,000 clusters.
	$(RELEASE)/emco-e2e bench traffic

.PHONY: bench-git
bench-git: build-bench ## What a branch costs, in target/bench/git.json: commits, bytes and requests for 100 clusters through Git.
	$(RELEASE)/emco-e2e bench git

.PHONY: bench-fleet
bench-fleet: build-bench ## What 2,000 simulated clusters cost, in target/bench/fleet.json: to register, deploy to, lose and start with.
	$(RELEASE)/emco-e2e bench fleet

.PHONY: bench-dashboard
bench-dashboard: build-bench ## How large and quick the dashboard's pages are, with 10,000 clusters, in target/bench/dashboard.json.
	$(RELEASE)/emco-e2e bench dashboard

.PHONY: bench-helm
bench-helm: build-bench
	@[ -n "$(CHARTS)" ] || { echo 'bench-helm needs the corpus of real charts: make bench-helm CHARTS=DIR, or set EMCO_CHARTS' >&2; exit 1; }
	@helm=$$($(RELEASE)/emco-e2e programs helm); \
	HELM="$${helm##* }" EMCO_CHARTS="$(abspath $(CHARTS))" $(STATIC) bench --target $(HOST) -p emco-helm --bench helm

.PHONY: soak
soak: build ## What is too slow for each commit (about three hours); STEP=NAME runs one step, STEP=tests those of test programs.
	@$(BINS)
	@# Test programs are built in between, as those of each run.
	$(LINTED) EMCO_OPERATOR_BIN=$(abspath $(RELEASE))/emco-operator $(TARGET)/debug/emco-e2e soak $(if $(STEP),--only $(STEP)) $(if $(CHARTS),--charts "$(CHARTS)")

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


.PHONY: book
book: $(MDBOOK) ## Build the book (docs/book).
	$(MDBOOK) build docs

.PHONY: docs
docs: book ## Build the book (docs/book) and the documentation of the crates (target/doc).
	$(CARGO) doc --workspace --no-deps

.PHONY: clean-cache
clean-cache: ## Remove built control planes, Helm and tools.
	rm -rf "$(CACHE)"

# Tools, each installed once into the cache. In a folder of their own for building, which is removed afterwards.
$(CARGO_DENY):
	@echo 'installing cargo-deny $(CARGO_DENY_VERSION), once; this takes some minutes'
	@# Not optimized: it reads some files, and takes longer to build than it ever runs.
	CARGO_TARGET_DIR=$(CACHE)/tools/building $(CARGO) install --debug --locked --version $(CARGO_DENY_VERSION) --root $(CACHE)/tools/cargo-deny-$(CARGO_DENY_VERSION) cargo-deny
	@rm -rf $(CACHE)/tools/building

$(MDBOOK):
	@echo 'installing mdbook $(MDBOOK_VERSION), once; this takes a minute or two'
	@# Not optimized, for the same reason, and not by the lints of this workspace.
	env -u RUSTC_WORKSPACE_WRAPPER CARGO_PROFILE_RELEASE_OPT_LEVEL=0 CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 CARGO_TARGET_DIR=$(CACHE)/tools/building $(CARGO) install --locked --version $(MDBOOK_VERSION) --no-default-features --features search --root $(CACHE)/tools/mdbook-$(MDBOOK_VERSION) mdbook
	@rm -rf $(CACHE)/tools/building

$(CARGO_FUZZ):
	@echo 'installing cargo-fuzz $(CARGO_FUZZ_VERSION), once'
	CARGO_TARGET_DIR=$(CACHE)/tools/building $(CARGO) install --locked --version $(CARGO_FUZZ_VERSION) --root $(CACHE)/tools/cargo-fuzz-$(CARGO_FUZZ_VERSION) cargo-fuzz
	@rm -rf $(CACHE)/tools/building

$(PYYAML)/done:
	PIP_ROOT_USER_ACTION=ignore $(PYTHON) -m pip install --quiet --disable-pip-version-check --upgrade --target $(PYYAML) PyYAML==$(PYYAML_VERSION)
	@touch $@

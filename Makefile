# Everything works from a fresh clone that has only Python 3.11 or newer.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PAPER := $(VENV)/.installed-paper
SYSTEM := $(VENV)/.system-packages
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Tests start Python some hundred times: without bytecode that takes half as long again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup test test-slow lint format paper bench docs site coverage clean

help:  ## show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

setup: $(STAMP)  ## make .venv and install the pinned dependencies

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(STAMP): pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@ $(PAPER)

# The reproduction needs no tools of developers, and a third of the time to install.
$(PAPER): pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[paper]'
	@touch $@

$(SYSTEM): scripts/system-packages | $(STAMP)
	@scripts/system-packages
	@touch $@

test: $(STAMP) $(SYSTEM)  ## run the quick tests (less than five minutes on two idle cores)
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not slow" $(ARGS)

test-slow: $(STAMP)  ## run the long statistical tests, and all properties on many more examples
	$(BIN)/python -m pytest -n auto --dist worksteal -m slow $(ARGS)
	MALLEABLE_EXAMPLES=20 $(BIN)/python -m pytest -n auto --dist worksteal -m "hypothesis and not slow" $(ARGS)

lint: $(STAMP)  ## ruff, mypy --strict, import layers, links of the documentation
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

format: $(STAMP)  ## let ruff format and mend
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

paper: $(PAPER)  ## reproduce the paper into out/paper (ARGS=--quick for a first look)
	$(BIN)/malleable paper $(ARGS)

bench: $(STAMP)  ## time the hot paths on this machine, as ratios within one run
	$(BIN)/python -m benchmarks $(ARGS)

docs: $(STAMP)  ## regenerate the reference pages and notebooks from the code
	$(BIN)/python docs/generate.py
	$(BIN)/python docs/make_notebook.py

site: $(STAMP)  ## the documentation as a site that opens from disk: out/site/index.html
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

coverage: $(STAMP)  ## which lines do the tests not run?
	$(BIN)/python -m pytest -n auto -m "not slow" --cov --cov-report=term-missing

clean:  ## forget the virtual environment and caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache

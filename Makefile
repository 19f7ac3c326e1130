# The commands. CMake with its presets does the work; this file only names it. make help lists them.

JOBS ?= $(shell nproc)
PRESET ?= dev
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 60
# make demo DEMO_FLAGS= takes all texts and the longer experiment; --quick ends in 15 s.
DEMO_FLAGS ?= --quick
export FUZZ_SECONDS JOBS

.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

.PHONY: help
help: ## Print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' \
	  $(firstword $(MAKEFILE_LIST))
	@echo "Variables: JOBS=$(JOBS) PRESET=$(PRESET) PREFIX=$(PREFIX)" \
	  "FUZZ_SECONDS=$(FUZZ_SECONDS) DEMO_FLAGS=$(DEMO_FLAGS)"

.PHONY: setup
setup: ## Install what the machine lacks: Debian packages, Python packages into .venv
	@tools/setup.sh build example tests viewers bench

.PHONY: build
build: ## Build build/$(PRESET): dev (with the quick tests), release, asan, tsan or fuzz
	@tools/setup.sh build
	@tools/build.sh $(PRESET)

.PHONY: demo
demo: ## Set up, build, and profile a real model's inference (examples/minilm)
	@tools/setup.sh build example
	@tools/build.sh release minilm-demo minilm prof_product
	@tools/demo.sh $(DEMO_FLAGS)

.PHONY: test
test: ## Set up, build, and run the quick tests, in under 6 minutes on 2 cores
	@tools/setup.sh --debian build example tests
	@tools/run-tests.sh test

.PHONY: test-long
test-long: ## All that takes long, hours (ROWS="R1 R7": only these rows)
	@tools/setup.sh build example tests valgrind lint wheel viewers
	@tools/test-long.sh $(ROWS)

.PHONY: test-ci
test-ci: ## The rest of CI: faults, stress, sanitizers, lint, the wheel, torch, fuzzing, viewers
	@tools/setup.sh build example tests lint wheel viewers
	@tools/run-tests.sh ci

.PHONY: bench
bench: ## Measure the promises, one a line: measured, bound, held or not
	@tools/setup.sh build bench
	@tools/build.sh release prof_bench
	@bench/run.sh build/release

.PHONY: test-asan test-tsan
test-asan: ## The C tests under AddressSanitizer and UndefinedBehaviorSanitizer
test-tsan: ## The C tests under ThreadSanitizer
test-asan test-tsan:
	@tools/setup.sh build tests
	@tools/run-tests.sh $(@:test-%=%)

.PHONY: test-valgrind
test-valgrind: ## The C tests that fit under valgrind's memcheck
	@tools/setup.sh build tests valgrind
	@tools/run-tests.sh valgrind

.PHONY: test-torch
test-torch: ## The Python package beside the real torch.profiler; torch takes 5 GB in .venv-torch
	@tools/setup.sh build tests
	@PROF_LONG=1 tools/run-tests.sh torch

.PHONY: lint
lint: ## clang-tidy (PROF_LONG=1: its analyzer too), cppcheck, ruff, mypy; a finding is an error
	@tools/setup.sh build example tests lint
	@tools/run-tests.sh lint

.PHONY: fuzz
fuzz: ## Fuzz the reader for FUZZ_SECONDS
	@tools/setup.sh build tests
	@tools/run-tests.sh fuzz

ARCH ?= $(shell uname -m)
.PHONY: wheel
wheel: ## Build the Python wheel for $(ARCH) in build/wheel; with a compiler that it fetches
	@tools/setup.sh build wheel
	@tools/wheel.sh $(ARCH)

# The options of tests/viewers/picture.py: which slice is selected, which part of the time is shown.
PICTURE_FLAGS ?=
.PHONY: picture
picture: ## Take the README's picture of the demo's trace, in the Perfetto UI
	@test -e build/minilm-opencl-trace.json || $(MAKE) demo
	@tools/setup.sh viewers picture
	@mkdir -p docs/pictures
	@.venv/bin/python tests/viewers/picture.py build/minilm-opencl-trace.json \
	  docs/pictures/minilm.png $(PICTURE_FLAGS)

.PHONY: picture-resnet18
picture-resnet18: ## Take the picture of a ResNet-18 in PyTorch (after make test-torch, for torch)
	@test -x .venv-torch/bin/python || \
	  { echo "make: .venv-torch is not there: type make test-torch first" >&2; exit 1; }
	@tools/setup.sh build viewers picture
	@tools/build.sh dev >/dev/null
	@PROF_LIBRARY=$(CURDIR)/build/dev/libprof.so PYTHONPATH=$(CURDIR)/bindings/python \
	  .venv-torch/bin/python examples/python/resnet18.py build/resnet18.json
	@.venv/bin/python tests/viewers/picture.py build/resnet18.json docs/pictures/resnet18.png \
	  --size 1600x470 $(PICTURE_FLAGS)

# On a quiet machine: the pictures show times. PICTURE_FLAGS=--keep takes the captures of before.
.PHONY: picture-report
picture-report: ## Take the pictures of a report and of a flame graph, from the demo's runs
	@tools/setup.sh build example viewers
	@tools/build.sh release minilm-demo prof
	@.venv/bin/python tests/viewers/report_pictures.py \
	  "$$(PATH=$(CURDIR)/.venv/bin:$$PATH examples/minilm/fetch-model.sh)" $(PICTURE_FLAGS)

# ldconfig: programs find the library under a prefix that the loader knows.
.PHONY: install
install: ## Install the release build under PREFIX (DESTDIR is honoured)
	@tools/setup.sh build
	@tools/build.sh release prof_product
	@cmake --install build/release --prefix $(PREFIX)
	@[ -n "$(DESTDIR)" ] || [ "$$(id -u)" -ne 0 ] || ldconfig

.PHONY: clean
clean: ## Remove build/; .venv and the model's cache stay
	@rm -rf build

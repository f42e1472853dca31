# `make train` and `make test` set everything up first, in
#   VENV=dir   a virtual environment, created where it is missing;
#   VENV=      (empty) the current Python as it is: nothing but pyg_sparse itself is installed;
#   otherwise  the active virtual environment, or else .venv.
# TORCH is the requirement to install. An active virtual environment keeps the torch it has, unless TORCH is given.
# PYTHON creates the environment, or is the current Python of VENV=.

PYTHON ?= python3
TORCH ?= torch==2.13.0
VENV ?= $(or $(VIRTUAL_ENV),.venv)
TRAIN_ARGS ?= --dataset reddit-shaped --compare --out results/gcn_reddit
PYTEST_ARGS ?= $(shell $(PY) -c 'from importlib.util import find_spec; print("-n 2" * bool(find_spec("xdist")))')

PY := $(if $(VENV),$(VENV)/bin/python,$(PYTHON))
PIP := $(PY) -m pip --disable-pip-version-check -qq
EXTRAS := .[test,plots,cli,dev]
INSTALL := --no-build-isolation $(if $(VENV),-e "$(EXTRAS)",--no-deps -e .)
STAMPS := $(or $(VENV),build/current-python)/.pyg_sparse
SOURCES := $(shell find csrc -type f)
FOLDERS := $(shell find csrc -type d)

# Where torch finds ninja, and lint its tools.
export PATH := $(if $(VENV),$(abspath $(VENV))/bin:)$(PATH)

# Everything that asks for a new installation or build when it changes.
SETTINGS := $(CURDIR) $(PY) $(TORCH) $(CUDA_HOME) $(PYG_SPARSE_CUDA) $(TORCH_CUDA_ARCH_LIST)

.PHONY: train test build lint format check-cuda sanitize instructions clean distclean FORCE

train: build
	@$(call require,matplotlib)
	$(PY) -m examples.gcn_reddit $(TRAIN_ARGS)

test: build
	@$(call require,pytest hypothesis scipy)
	$(PY) -m pytest -q $(PYTEST_ARGS)

build: $(STAMPS)/built

lint: build
	ruff check
	ruff format --check
	mypy
	clang-format --dry-run -Werror $(SOURCES) $(wildcard tools/*.cpp)

format: build
	ruff check --fix
	ruff format
	clang-format -i $(SOURCES) $(wildcard tools/*.cpp)

check-cuda: build
	$(PY) tools/check_cuda.py

# The CPU's kernels under AddressSanitizer and UndefinedBehaviorSanitizer, in a library of their own; -P and the import
# mode keep the one in pyg_sparse/ out.
SANITIZED := PYTHONPATH=$(CURDIR)/build/sanitize/lib OMP_NUM_THREADS=2 ASAN_OPTIONS=detect_leaks=0 \
  LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libubsan.so)"
SANITIZE_TESTS ?= tests/test_scipy.py tests/test_cpu.py

sanitize: build
	@$(call require,pytest hypothesis scipy)
	PYG_SPARSE_SANITIZE=1 PYG_SPARSE_CUDA=0 $(PY) setup.py -q build --build-base build/sanitize \
	  --build-lib build/sanitize/lib
	$(SANITIZED) $(PY) -P -c 'import pyg_sparse; assert "/build/sanitize/" in pyg_sparse.__file__, pyg_sparse.__file__'
	$(SANITIZED) $(PY) -P -m pytest -q --import-mode=append -p no:cacheprovider $(SANITIZE_TESTS)

# Instructions of the CPU's kernels, against tools/instruction_budget.json.
instructions: build
	$(PY) tools/count_instructions.py

clean:
	rm -rf build results *.egg-info pyg_sparse/_C.so .pytest_cache .mypy_cache .ruff_cache .hypothesis

distclean: clean
	rm -rf .venv

# A library that is missing, or newer because another environment built it, is built again.
$(STAMPS)/built: setup.py pyproject.toml $(SOURCES) $(FOLDERS) $(STAMPS)/ready $(or $(wildcard pyg_sparse/_C.so),FORCE)
	@echo "building pyg_sparse: about a minute, with CUDA three"
	@$(PIP) install $(INSTALL)
	@touch $@

ifeq ($(VENV),)
$(STAMPS)/ready: FORCE $(STAMPS)/settings
	@$(call require,torch torch_geometric numpy platformdirs safetensors setuptools wheel ninja)
	@test -e $@ -a ! $(STAMPS)/settings -nt $@ || touch $@
else
KEEP_TORCH := $(and $(filter file,$(origin TORCH)),$(filter $(VENV),$(VIRTUAL_ENV)))
$(STAMPS)/ready: pyproject.toml $(STAMPS)/settings
	@$(PY) -m pip --version >/dev/null 2>&1 || { $(check_python) && echo "creating $(VENV)" && $(PYTHON) -m venv $(VENV); }
	@torch="$(TORCH)"; $(if $(KEEP_TORCH),if $(PY) -c "import torch" 2>/dev/null; then torch=torch; fi;) \
	echo "installing $$torch into $(VENV)"; \
	$(PIP) install "setuptools>=64" wheel ninja numpy "$$torch"
	@touch $@
endif

$(STAMPS)/settings: FORCE
	@mkdir -p $(@D)
	@echo '$(SETTINGS)' | cmp -s - $@ || echo '$(SETTINGS)' > $@

check_python = $(PYTHON) -c 'import sys; \
sys.exit("$(PYTHON) is %d.%d; set PYTHON to a Python >= 3.11" % sys.version_info[:2] if sys.version_info < (3, 11) else 0)'

require = $(PY) -c 'import sys; from importlib.util import find_spec; \
missing = [name for name in sys.argv[1:] if find_spec(name) is None]; \
sys.exit("not installed: %s (for %s)" % (", ".join(missing), sys.executable) if missing else 0)' $(1)

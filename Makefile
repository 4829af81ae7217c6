# Two commands: `make demo` records a real training run and names its bottlenecks; `make test` runs every check.
# PYTHON=python3.12 chooses the Python.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
                 $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV   ?= .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-input

# Where no torch is there yet, the version this release was tested with is installed.
TESTED  = $$($(BIN)/python -c "from importlib.util import find_spec; print('' if find_spec('torch') else '-c .ci/constraints.txt')")

# Built by the installation where there is a C compiler.
SCANNER = $(wildcard explorer/collectors/kineto/scanner/* explorer/collectors/kineto/sweep/* explorer/collectors/kineto/scratch/*)

.PHONY: setup demo test lint docs clean

setup: $(VENV)/.ready

# A torch that is already there (for a GPU, for Neuron) is used, not replaced: the environment sees the system's packages.
$(VENV)/bin/python:
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed: make PYTHON=/path/to/python3.12" >&2; exit 2; }
	@echo "Making $(VENV) with $(PYTHON)"
	@$(PYTHON) -m venv $$($(PYTHON) -c "from importlib.util import find_spec; print('--system-site-packages' if find_spec('torch') else '')") $(VENV)

$(VENV)/.capture: pyproject.toml $(SCANNER) | $(VENV)/bin/python
	@echo "Installing neuron-explorer and what recording needs"
	@$(PIP) $(TESTED) -e ".[capture]"
	@touch $@

$(VENV)/.ready: pyproject.toml $(SCANNER) | $(VENV)/bin/python
	@echo "Installing neuron-explorer with everything that its tests need"
	@$(PIP) $(TESTED) -e ".[capture,mcp,dev]"
	@touch $@ $(VENV)/.capture

demo: $(VENV)/.capture
	@$(BIN)/neuron-explorer demo

# Many tests record real programs, which a machine busy with the test beside can disturb: what fails there is run once
# more alone, in plain sight, and must pass then. Anything but failed tests (an interrupt, a crash) ends here at once.
test: lint
	@$(BIN)/python -m pytest -n 2 --dist loadfile || { \
		[ $$? -eq 1 ] || exit 2; \
		echo "==== Failed beside other tests; once more, alone:"; \
		$(BIN)/python -m pytest -v --last-failed --last-failed-no-failures none; }

lint: setup
	$(BIN)/ruff check explorer tests benchmarks examples docs
	$(BIN)/ruff format --check explorer tests benchmarks examples docs
	$(BIN)/mypy

docs: setup
	$(BIN)/python docs/generate.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "site/index.html"

clean:
	rm -rf $(VENV) build dist site *.egg-info .pytest_cache .mypy_cache .ruff_cache

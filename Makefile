# `make demo` and `make test` need nothing but Python 3.11, git and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# compiled modules are kept, whatever the environment says: the tests start many processes
TESTS := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest

.PHONY: demo test check test-slow test-compile test-gpu bench clean

demo: $(VENV)/.demo
	$(BIN)/torchcaps demo --out demo

test: $(VENV)/.dev
	$(TESTS) -n 2 -m "not gpu and not compile and not slow" --ignore tests/test_architecture.py \
		--jaxtyping-packages=torchcaps,beartype.beartype
	$(TESTS) -n 2 -m "compile and not gpu and not slow"
	$(MAKE) check

check: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(TESTS) tests/test_architecture.py

test-slow: $(VENV)/.dev
	$(TESTS) -n 2 -m "slow and not gpu and not compile"

test-compile: $(VENV)/.dev
	$(TESTS) -m compile

test-gpu:
	$(PYTHON) -m pytest -m gpu

bench: $(VENV)/.dev
	device=$$($(BIN)/python -c "import torch; print('cuda' if torch.cuda.is_available() else 'cpu')"); \
	for suite in routing train models; do \
		$(BIN)/torchcaps bench $$suite --out benchmarks/results/$$suite--$$device.json || exit 1; \
	done

# pip takes torch first: the extras of other packages must not choose another build
$(VENV)/.demo: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -e ".[demo]"
	touch $@

$(VENV)/.dev: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -e ".[dev]"
	touch $@

clean:
	rm -rf $(VENV) demo runs .pytest_cache .mypy_cache .ruff_cache

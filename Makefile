# `make demo` and `make test` need nothing but Python 3.11, git and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# compiled modules are kept, whatever the environment says: the tests start many processes, side by side
TESTS := PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/python -m pytest
# each process gets one half of the files and makes their fixtures once; who is done first takes from the other
TWO := -n 2 --dist worksteal

.PHONY: demo test check test-slow test-compile test-gpu bench pages docs dist clean

demo: $(VENV)/.demo
	$(BIN)/torchcaps demo --out demo

test: $(VENV)/.dev
	$(TESTS) $(TWO) -m "not gpu and not compile and not slow" --ignore tests/test_architecture.py \
		--jaxtyping-packages=torchcaps,beartype.beartype
	$(TESTS) $(TWO) -m "compile and not gpu and not slow"
	$(MAKE) check

check: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(TESTS) tests/test_architecture.py

test-slow: $(VENV)/.dev
	$(TESTS) $(TWO) -m "slow and not gpu"

test-compile: $(VENV)/.dev
	$(TESTS) -m compile

# pytest-benchmark, where it is installed, warns of processes, and tests take warnings for errors
test-gpu:
	$(PYTHON) -m pytest -m gpu -n 4 --dist worksteal -p no:benchmark

bench: $(VENV)/.dev
	device=$$($(BIN)/python -c "import torch; print('cuda' if torch.cuda.is_available() else 'cpu')"); \
	for suite in routing train models; do \
		$(BIN)/torchcaps bench $$suite --out benchmarks/results/$$suite--$$device.json || exit 1; \
	done

# pages in results/, and tables in README and docs, from the result files
pages: $(VENV)/.dev
	$(BIN)/python -m torchcaps.experiments.results.documents

# a broken link, a page outside the navigation or a docstring that does not render fails
docs: $(VENV)/.dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# wheel and sdist, their metadata checked, and the wheel used in an environment of its own
dist: $(VENV)/.dev
	rm -rf dist
	$(BIN)/python -m build --outdir dist .
	$(BIN)/twine check --strict dist/*
	$(BIN)/python packaging/smoke.py dist/*.whl

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
	rm -rf $(VENV) demo runs dist site .pytest_cache .mypy_cache .ruff_cache

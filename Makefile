# Each target sets up .venv by itself; a second run does only what is new.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
WORKERS ?= auto
PYTEST := -m pytest --numprocesses $(WORKERS) --dist loadscope --no-loadscope-reorder
# Each worker has one core: the threads of two BLAS would wait for each other.
TESTING := SCIPY_ARRAY_API=1 OMP_NUM_THREADS=1
# Otherwise each process that a test starts compiles the package again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test mutants test-minimum test-floors test-integrations test-offers lint lint-python lint-types lint-page bench coverage docs gallery reproduce reproduce-full format clean

demo: .venv/.base
	$(BIN)/isocost demo

test: .venv/.dev .venv/.docs .venv/.data node_modules/.installed
	$(TESTING) $(BIN)/python $(PYTEST)
	@if command -v npm > /dev/null; then npm test --silent; fi

# Spark 3.5 leaves its sockets to the garbage collector, and Python warns of that; ours are closed in `make test`.
test-minimum: .venv-minimum/.installed
	$(TESTING) .venv-minimum/bin/python $(PYTEST) -W "ignore:unclosed <socket:ResourceWarning"

# The part of it that depends most on versions, without what is slow to install.
FLOORS := arrays cli everywhere files frames nan package plane postprocess report scorers
test-floors: .venv-floors/.installed
	$(TESTING) .venv-floors/bin/python $(PYTEST) $(FLOORS:%=tests/test_%.py)

# What stands outside the package: MLflow, the GitHub action, pre-commit, dbt and R.  Where R is missing, its tests are skipped.
test-integrations: .venv-integrations/.installed
	@if ! command -v Rscript > /dev/null && command -v apt-get > /dev/null && [ "$$(id -u)" = 0 ]; then \
	    apt-get update --quiet=2 && \
	    apt-get install --quiet=2 --yes --no-install-recommends r-base-core r-cran-digest > /dev/null; fi
	.venv-integrations/bin/python -m pytest tests/integrations

# One question, one answer at every door, on 40 random data sets instead of 8; about two minutes.
test-offers: .venv/.dev
	$(TESTING) ISOCOST_OFFERS=40 $(BIN)/python -m pytest --numprocesses $(WORKERS) tests/test_offers.py

# How much the tests notice: branch coverage, and 200 places broken one at a time; about an hour.
mutants: .venv/.dev .venv/.data
	$(TESTING) $(BIN)/python tools/mutants.py

lint: lint-python lint-types lint-page

lint-python: .venv/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

lint-types: .venv/.dev
	$(BIN)/mypy

lint-page: node_modules/.installed
	@if command -v npm > /dev/null; then npm run --silent check; fi

format: .venv/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: .venv/.dev .venv-peers/.installed
	$(BIN)/python -m benchmarks

# How often intervals and verdicts are right, on data with known truth, into docs/coverage.md; hours, and can be continued.
coverage: .venv/.dev
	$(BIN)/python -m benchmarks.coverage 600 2000
	$(BIN)/python -m benchmarks.hard

docs: .venv/.dev .venv/.docs
	$(BIN)/python tools/refresh_docs.py
	$(BIN)/python -m sphinx --quiet --fail-on-warning -b html docs build/docs
	@echo "open build/docs/index.html"

# Screenshots of the report into build/gallery, and a few small ones into docs/gallery; needs Chromium.
gallery: .venv/.dev
	$(BIN)/python tools/make_pictures.py
	$(BIN)/python tools/gallery.py

# The paper's experiments in about five minutes, into build/reproduction.
reproduce: .venv/.reproduction
	$(BIN)/python -m reproduction --quick

# The same at full size, 60 splits of the people for health and 12 for income, under an hour on two cores: rewrites docs/reproduction.md.
reproduce-full: .venv/.reproduction
	$(BIN)/python -m reproduction --full -o docs/reproduction --page docs/reproduction.md

clean:
	rm -rf node_modules .venv .venv-floors .venv-integrations .venv-minimum .venv-peers build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/.base: pyproject.toml constraints.txt | .venv/bin/python
	$(PIP) --editable ".[report]"
	@touch $@

.venv/.dev: pyproject.toml constraints.txt | .venv/bin/python
	$(PIP) --editable ".[dev]"
	@touch $@ .venv/.base .venv/.reproduction

.venv/.reproduction: pyproject.toml constraints.txt | .venv/bin/python
	$(PIP) --editable ".[reproduction]"
	@touch $@

# What checks and tests the page's script; without npm these are left out.
node_modules/.installed: package.json
	@if command -v npm > /dev/null; then npm install --silent --no-package-lock --ignore-scripts; fi
	@mkdir -p node_modules
	@touch $@

# Adult and COMPAS into the cache; without them some tests are skipped.
.venv/.data: reproduction/fetch.py | .venv/.dev
	-$(BIN)/python -m reproduction data adult compas --fetch
	@touch $@

.venv-peers/.installed: benchmarks/peers.txt
	$(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python -m pip install --quiet --disable-pip-version-check --requirement $<
	@touch $@

# From 1.11 on, dbt-core downloads a part of itself while it is installed.
.venv-integrations/.installed: pyproject.toml
	$(PYTHON) -m venv .venv-integrations
	.venv-integrations/bin/python -m pip install --quiet --disable-pip-version-check --editable ".[mlflow]" \
	    alembic "dbt-core>=1.9,<1.11" "dbt-duckdb>=1.9" hypothesis pre-commit pytest pyyaml sqlalchemy
	@touch $@

.venv-floors/.installed: pyproject.toml constraints-minimum.txt
	$(PYTHON) -m venv --clear .venv-floors
	.venv-floors/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints-minimum.txt \
	    --editable ".[plot,report,dask]" "ibis-framework[duckdb]" hypothesis polars pyarrow pytest pytest-xdist
	@touch $@

.venv-minimum/.installed: pyproject.toml constraints-minimum.txt
	$(PYTHON) -m venv .venv-minimum
	.venv-minimum/bin/python -m pip install --quiet --disable-pip-version-check \
	    --constraint constraints-minimum.txt --editable ".[dev]"
	@touch $@

.venv/.docs: pyproject.toml constraints.txt | .venv/bin/python
	$(PIP) --editable ".[docs]"
	@touch $@

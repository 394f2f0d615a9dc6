# Everything a fresh clone needs: `make demo` and `make test` set up their own environment in .venv.
PYTHON ?= python3
VENV ?= .venv
CONSTRAINTS ?= constraints.txt
BIN = $(VENV)/bin
STAMP = $(VENV)/.installed-$(basename $(notdir $(CONSTRAINTS)))
OLDEST = .venv-oldest
# Tests of what faces scikit-learn, pandas and NumPy: what an older release of these can break.
FACING = $(addprefix tests/test_,$(addsuffix .py,bag classifier classifier_inputs cli \
	comparison estimators explain fitted importance pipelines regimes report reviews streaming synthetic \
	trainings transformer))
TESTS ?=

# What the demo reads (generated reviews without it), and where benchmarks and figures look for
# imdb_train.csv.gz, imdb_test.csv.gz, yelp_stars_train.csv.gz and yelp_stars_test.csv.gz.
DATA ?=
TEST ?=
REVIEWS ?= ../shared/data
# Where the report goes.
OUT ?= report.html
IMDB = $(wildcard $(REVIEWS)/imdb_train.csv.gz)

.PHONY: help demo report test check lint types tests doctests test-oldest bench paper docs clean

help:
	@echo "make demo [DATA=reviews.csv [TEST=held_out.csv]]   compare classifiers on generated reviews, or on yours"
	@echo "make report [DATA=reviews.csv [TEST=held_out.csv]]   a page on what the model reaches, goes by and gets wrong (OUT=report.html)"
	@echo "make test          lint, type check, tests and doctests"
	@echo "make test-oldest   tests of what faces scikit-learn, with the oldest supported release"
	@echo "make lint          ruff alone"
	@echo "make bench         the benchmark table (REVIEWS=folder for the real reviews; FAST=1 for a short run)"
	@echo "make paper         the paper's figures and tables, on docs/paper.md (REVIEWS=folder; FAST=1 for a trial)"
	@echo "make docs          the figures of the documentation"

$(STAMP): pyproject.toml $(CONSTRAINTS)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c $(CONSTRAINTS) -e ".[test,plot,bench,docs,theory]"
	touch $@

demo: $(STAMP)
	$(BIN)/python -m sklearn_clsattn compare $(DATA) $(if $(TEST),--test $(TEST))

# On your texts, or the IMDB reviews where they are, or generated ones.
report: $(STAMP)
	$(BIN)/python -m sklearn_clsattn report --force -o $(OUT) \
		$(if $(DATA),$(DATA) $(if $(TEST),--test $(TEST)),$(if $(IMDB),$(IMDB) --test $(REVIEWS)/imdb_test.csv.gz))

test: lint types tests doctests

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

# One thread a worker: teams of threads that share cores wait for each other.
tests: $(STAMP)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 -q $(TESTS)

doctests: $(STAMP)
	$(BIN)/python -m pytest -q --doctest-modules sklearn_clsattn
	$(BIN)/python -m pytest -q --doctest-glob='*.md' README.md docs

test-oldest:
	$(MAKE) tests VENV=$(OLDEST) CONSTRAINTS=constraints-oldest.txt TESTS="$(FACING)"

bench: $(STAMP)
	$(BIN)/python benchmarks/run.py --reviews $(REVIEWS) $(if $(FAST),--fast)

paper: $(STAMP)
	$(BIN)/python -m benchmarks.paper --reviews $(REVIEWS) $(if $(FAST),--fast)

docs: $(STAMP)
	$(BIN)/python docs/figures.py $(wildcard $(REVIEWS)/imdb_train.csv.gz)

clean:
	rm -rf .venv .venv-oldest build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis

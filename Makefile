# Everything a fresh clone needs: `make demo` and `make test` set up their own environment in .venv.
# Without byte code, which is made at the first import of what is imported: that halves the set-up.
# It is kept then, whatever the environment says, as compiling PyTorch takes seconds in each process.
export PYTHONDONTWRITEBYTECODE =
PYTHON ?= python3
VENV ?= .venv
CONSTRAINTS ?= constraints.txt
BIN = $(VENV)/bin
# pip 25.1 is the first that knows dependency groups. setuptools warns of every editable installation.
INSTALL = PYTHONWARNINGS=ignore $(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check -c $(CONSTRAINTS)
STAMP = $(VENV)/.installed-$(basename $(notdir $(CONSTRAINTS)))
OLDEST = .venv-oldest
# Tests of what faces scikit-learn, pandas, NumPy and SciPy: what an older release of these can break.
FACING = $(addprefix tests/test_,$(addsuffix .py,comparison contract context depends_on explained_pipelines explained_classifiers callbacks fit groups \
	importance inputs label_issues saving text_classifier token_vectorizer))
# What one needs while working: the default fit's numbers, the classifier, the golden master.
QUICK = $(addprefix tests/test_,$(addsuffix .py,fit fitted_model golden importance imports lbfgs objective))
# Tests of what computes: where another CPU's rounding could reach a threshold.
NUMERICAL = $(addprefix tests/test_,$(addsuffix .py,assumptions context fit fitted_model golden \
	gradient_flow importance label_issues lbfgs max_margin objective one_step_embeddings \
	paper_text selective_gradient streaming))
# Other CPUs' roundings, on any x86 CPU: one without vector instructions and one without AVX-512.
# Features that NumPy can do without are asked of NumPy, which refuses those that a CPU lacks.
NUMPY_FEATURES = $$($(BIN)/python -c "from numpy._core._multiarray_umath import \
	__cpu_dispatch__, __cpu_features__; print(*filter(__cpu_features__.get, __cpu_dispatch__))")
ROUNDING_PLAIN = OMP_NUM_THREADS=1 ATEN_CPU_CAPABILITY=default MKL_CBWR=COMPATIBLE \
	OPENBLAS_CORETYPE=Prescott NPY_DISABLE_CPU_FEATURES="$(NUMPY_FEATURES)"
ROUNDING_AVX2 = OMP_NUM_THREADS=2 OMP_WAIT_POLICY=passive ATEN_CPU_CAPABILITY=avx2 MKL_CBWR=AVX2 OPENBLAS_CORETYPE=Zen
# Examples inside other programs are run by tests/test_hosts.py.
DOCTESTS = --doctest-modules --doctest-glob='*.md' sklearn_clsattn README.md $(filter-out docs/hosts.md,$(wildcard docs/*.md))
TESTS ?=

# What the demo reads (generated messages without it), and where benchmarks and figures look for
# imdb_train.csv.gz, imdb_test.csv.gz, yelp_stars_train.csv.gz and yelp_stars_test.csv.gz.
DATA ?=
TEST ?=
REVIEWS ?= ../shared/data
# Sets that defaults are chosen on: NAME.csv.gz with the columns text, label and part.
EXPLORE ?= $(REVIEWS)/explore
# Columns of DATA with other than the usual names, and the character between them.
TEXT =
LABEL =
SEP =
OPTIONS = $(if $(TEST),--test $(TEST)) $(if $(TEXT),--text '$(TEXT)') $(if $(LABEL),--label '$(LABEL)') $(if $(SEP),--sep '$(SEP)')
# Where the report goes.
OUT ?= report.html
SITE ?= build/site
SITE_STAMP = $(VENV)/.installed-docs
IMDB = $(wildcard $(REVIEWS)/imdb_train.csv.gz)
REVIEWS_HERE = $(if $(IMDB),--reviews $(REVIEWS))

.PHONY: help demo report test web quick lint types tests coverage doctests test-oldest test-roundings bench defaults paper \
	figures docs dist release clean

help:
	@echo "make demo [DATA=reviews.csv [TEST=held_out.csv]]   compare classifiers on generated messages, or on your texts"
	@echo "make report [DATA=reviews.csv [TEST=held_out.csv]]   a page of the model's measures, tokens and mistakes (OUT=report.html)"
	@echo "   both take TEXT=column LABEL=column SEP=';' where DATA has other names of columns or another separator"
	@echo "make test          lint, type check, then tests and doctests"
	@echo "make web           what checks the script of pages (needs npm): make test then checks it as well"
	@echo "make quick         lint, type check and the tests of the default fit: while working"
	@echo "make tests TESTS=tests/test_fit.py   some tests alone"
	@echo "make coverage      lines and branches that the tests reach"
	@echo "make test-oldest   tests of what faces scikit-learn, with the oldest supported release"
	@echo "make test-roundings   tests of what computes, as two other kinds of CPU round"
	@echo "make lint | types | tests | doctests   one part of make test; make clean   remove environments and caches"
	@echo "make bench         the benchmark table (REVIEWS=folder for the real reviews; FAST=1 for a short run)"
	@echo "make defaults      how the defaults were chosen (EXPLORE=folder, REVIEWS=folder; FAST=1 for a trial)"
	@echo "make paper         the paper's figures and tables, on docs/paper.md (REVIEWS=folder; FAST=1 for a trial)"
	@echo "make figures       the figures of the documentation (REVIEWS=folder)"
	@echo "make dist          wheel and sdist, checked, installed in a new environment and tried"
	@echo "make release       make dist, then tag the version of pyproject.toml and push the tag"
	@echo "make docs          the documentation site, in build/site"

$(STAMP): pyproject.toml $(CONSTRAINTS)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check "pip>=25.1"
	$(INSTALL) -e ".[plot,theory]" --group test --group bench
	touch $@

demo: $(STAMP)
	$(BIN)/python -m sklearn_clsattn compare $(DATA) $(OPTIONS)

# On your texts, or the IMDB reviews where they are, or generated messages.
report: $(STAMP)
	$(BIN)/python -m sklearn_clsattn report --force -o $(OUT) \
		$(if $(DATA),$(DATA) $(OPTIONS),$(if $(IMDB),$(IMDB) --test $(REVIEWS)/imdb_test.csv.gz))

# Tests and doctests in one run: each worker loads the packages once. `make tests` has all tests.
test: lint types
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 -q -m "not long" $(DOCTESTS) tests

quick: lint types
	$(MAKE) tests TESTS="$(QUICK)"

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

# Linter, formatter and type checker of JavaScript, for tests/test_javascript.py.
web: tests/web/node_modules/.bin/tsc
tests/web/node_modules/.bin/tsc: tests/web/package.json
	cd tests/web && npm install --no-package-lock --no-audit --no-fund --loglevel=error
	touch $@

# One thread a worker: teams of threads that share cores wait for each other.
tests: $(STAMP)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 -q $(TESTS)

# Coverage of lines and branches.
coverage: $(STAMP)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 -q --cov=sklearn_clsattn --cov-branch --cov-report=term

doctests: $(STAMP)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 -q $(DOCTESTS)

test-oldest:
	$(MAKE) tests VENV=$(OLDEST) CONSTRAINTS=constraints-oldest.txt TESTS="$(FACING)"

# Two workers of one thread, then two of two, which do not spin while they wait.
test-roundings: $(STAMP)
	$(ROUNDING_PLAIN) $(BIN)/python -m pytest -n 2 -q $(NUMERICAL)
	$(ROUNDING_AVX2) $(BIN)/python -m pytest -n 2 -q $(NUMERICAL)

bench: $(STAMP)
	$(BIN)/python -m benchmarks.run $(REVIEWS_HERE) $(if $(FAST),--fast)
	$(BIN)/python -m benchmarks.bench_threads $(REVIEWS_HERE) $(if $(FAST),--rows 1000 --runs 1)
	$(BIN)/python -m benchmarks.costs counting $(REVIEWS_HERE) $(if $(FAST),--rows 1000)
	$(BIN)/python -m benchmarks.setfit $(if $(wildcard $(REVIEWS)/teachers),--explore $(EXPLORE) --teachers $(REVIEWS)/teachers)

defaults: $(STAMP)
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.defaults --explore $(EXPLORE) $(REVIEWS_HERE) $(if $(FAST),--fast)

paper: $(STAMP)
	$(BIN)/python -m benchmarks.paper $(REVIEWS_HERE) $(if $(FAST),--fast)
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.paper.needles $(if $(FAST),--fast)

figures: $(STAMP)
	$(BIN)/python docs/figures.py $(wildcard $(REVIEWS)/imdb_train.csv.gz)

$(SITE_STAMP): $(STAMP)
	$(INSTALL) --group docs
	touch $@

# Every warning is an error; the examples of the gallery and the tutorial run.
docs: $(SITE_STAMP)
	rm -rf docs/reference docs/auto_examples
	OMP_NUM_THREADS=1 $(BIN)/python -m sphinx -W --keep-going -q -c docs . $(SITE)
	@echo "$(SITE)/index.html"

# Wheel and sdist, checked; then the README's examples in an environment with nothing but the wheel.
dist: $(STAMP)
	rm -rf dist build/lib build/new
	$(INSTALL) --group dist
	$(BIN)/python -m build
	$(BIN)/python -m twine check --strict dist/*
	test $$(cat dist/*.whl | wc -c) -lt 400000
	$(BIN)/python -m venv build/new
	build/new/bin/python -I -m pip install --quiet --no-compile --disable-pip-version-check -c $(CONSTRAINTS) dist/*.whl
	cd build/new && bin/python -I -m doctest -o NORMALIZE_WHITESPACE ../../README.md \
		&& bin/sklearn-clsattn --version && bin/sklearn-clsattn report --force -o report.html

# A tag is for good: of a clean tree, whose changelog has a date. The workflow of tags publishes it.
release: dist
	git diff --quiet HEAD
	! grep --quiet "(unreleased)" CHANGELOG.md
	tag=v$$(sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml) && git tag --annotate --message "$$tag" $$tag && git push origin $$tag

clean:
	rm -rf docs/auto_examples docs/reference
	rm -rf .venv .venv-oldest build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis

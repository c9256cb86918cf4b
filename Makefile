# make crawl: a focused crawl of the synthetic web beside one of the same budget without focus
# make test : lint, types, layers and the test suite, with the newest Scrapy
# make test-long: tests that take long, of what a shorter one is in `make test`, too
# make docs : builds the documentation into build/site, warnings are errors; runs the commands of
#             the docs as printed, and the notebooks
# make docs-serve: shows the documentation at http://localhost:8000 while you edit it
# make test-oldest: tests of what is built on Scrapy, with the oldest one that pyproject.toml admits
# make extras   : each extra as users install it, by an old pip and without locks; its main command;
#                 EXTRAS=text tries one of them
# make lint     : the linter, the type checker, the layers, spelling and prose alone
# make notebooks: runs the notebooks and keeps what they show
# make bench    : the benchmarks, see docs/research/benchmarks.md
# make endurance: kills, full disks and power cuts by the dozen, and a crawl of 100,000 pages
# make fuzz     : looks for inputs that break something or cost too much, and for answers that end
#                 a crawl, a minute each (FUZZ_SECONDS); FUZZ=page-costs is one of the searches
# make deploy-check: the steps of docs/how-to/deploy.md on a Scrapyd of this machine
# make lock     : the versions and hashes in locks/, after a change of what is needed;
#                 LOCK_OPTIONS=--upgrade takes the newest of all
# Needs make and Python 3.11 or newer (make PYTHON=...); all else is installed into .venv
# (and .venv-oldest, .venv-pywb, .venv-replay, .venv-s3, .venv-spark), but for the programs that tests start: see
# .ci/programs

PYTHON ?= python3
# an image of Python may forbid it to keep what it has compiled: the suite starts hundreds of processes
unexport PYTHONDONTWRITEBYTECODE
BIN := .venv/bin
OLDEST_SCRAPY := $(shell sed -nE 's/^ *"scrapy>=([0-9.]+)".*/\1/p' pyproject.toml)
SCRAPY_TESTS := $(wildcard tests/unit/test_addon_*.py tests/unit/test_engine_*.py \
	tests/unit/test_extensions_*.py tests/integration/test_addon.py \
	tests/integration/test_anywhere.py \
	tests/integration/test_bad_web_*.py tests/integration/test_crawl_*.py \
	tests/integration/test_operations.py tests/integration/test_pipelines.py \
	tests/integration/test_revisit_hubs.py tests/integration/test_security_*.py)
# nothing that is not in the lock, nothing that runs code of others to be installed
LOCKED := pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all:
COMPILE = .venv-lock/bin/uv pip compile --quiet --universal --python-version 3.11 \
	--generate-hashes --no-annotate --custom-compile-command "make lock"
PINS := .venv-lock/pins.txt
# the extras that a crawl can need where nobody looks at it
SERVER := embeddings feeds languages metrics parquet pdf
FUZZ ?= all
FUZZ_SECONDS ?= 60
TOPIC ?= /Sports/Cycling
BUDGET ?= 140
ifndef CRAWL_DIR
CRAWL_DIR := crawls/demo-$(shell date +%Y%m%d-%H%M%S)
endif

DEMO_CRAWL = $(BIN)/focuscrawl crawl -a web=demo -a topic=$(TOPIC) \
	-a seeds=models/demo/seeds.csv -a budget=$(BUDGET)

.PHONY: crawl test test-long test-oldest beside lint bench endurance extras fuzz docs docs-serve notebooks deploy-check lock clean

.venv/.installed: LOCK = locks/dev.txt
.venv-oldest/.installed: LOCK = locks/oldest-scrapy.txt
.venv/.installed: locks/dev.txt
.venv-oldest/.installed: locks/oldest-scrapy.txt
.venv/.installed .venv-oldest/.installed: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "focuscrawl needs Python 3.11 or newer: make PYTHON=/path/to/it"; exit 2; }
	@$(PYTHON) -m venv $(@D) || \
		{ echo "this Python cannot make environments (on Debian: apt-get install python3-venv)"; exit 2; }
	@echo "installing into $(@D) ..."
	@$(@D)/bin/$(LOCKED) --requirement $(LOCK)
	@$(@D)/bin/pip install --quiet --disable-pip-version-check --no-index --no-deps \
		--no-build-isolation --editable .
	@touch $@

# what serves archives in a test. surt is no wheel: its setup.py is run, of the digest in the lock
.venv-pywb/.installed: locks/pywb.txt locks/surt.txt
	@$(PYTHON) -m venv $(@D)
	@echo "installing into $(@D) ..."
	@$(@D)/bin/$(LOCKED) --no-deps --requirement locks/pywb.txt
	@$(@D)/bin/pip download --quiet --disable-pip-version-check --require-hashes --no-deps \
		--no-build-isolation --dest $(@D) --requirement locks/surt.txt
	@$(@D)/bin/pip install --quiet --disable-pip-version-check --no-index --no-deps \
		--no-build-isolation $(@D)/surt-*.tar.gz
	@touch $@

# what displays exported archives in a browser, for a test; npm only downloads it
.venv-replay/.installed: locks/replaywebpage.sha512
	@mkdir -p $(@D)
	@echo "installing into $(@D) ..."
	@cd $(@D) && npm pack --silent replaywebpage@2.4.6 >npm.log && \
		sha512sum --check --quiet ../$< && tar -xzf replaywebpage-2.4.6.tgz
	@touch $@

# what does the work of rounds in tests, beside .venv. pyspark is no wheel either
.venv-spark/.installed: locks/spark.txt locks/pyspark.txt
	@$(PYTHON) -m venv $(@D)
	@echo "installing into $(@D) ..."
	@$(@D)/bin/$(LOCKED) --no-deps --requirement locks/spark.txt
	@$(@D)/bin/pip download --quiet --disable-pip-version-check --require-hashes --no-deps \
		--no-build-isolation --dest $(@D) --requirement locks/pyspark.txt
	@$(@D)/bin/pip install --quiet --disable-pip-version-check --no-index --no-deps \
		--no-build-isolation $(@D)/pyspark-*.tar.gz
	@rm $(@D)/pyspark-*.tar.gz
	@touch $@

# the S3 that tests of archives and rounds start
.venv-s3/.installed: locks/s3.txt
	@$(PYTHON) -m venv $(@D)
	@echo "installing into $(@D) ..."
	@$(@D)/bin/$(LOCKED) --requirement locks/s3.txt
	@touch $@

crawl: .venv/.installed
	@$(DEMO_CRAWL) -a crawl_dir=$(CRAWL_DIR)
	@echo "the same once more without focus, breadth-first ..."
	@$(DEMO_CRAWL) -a crawl_dir=$(CRAWL_DIR)/breadth-first -a strategy=breadth-first \
		2>$(CRAWL_DIR)/breadth-first.log || { cat $(CRAWL_DIR)/breadth-first.log; exit 1; }
	@$(BIN)/focuscrawl report $(CRAWL_DIR)/breadth-first $(CRAWL_DIR) --out $(CRAWL_DIR)/report \
		| grep "fetches each"
	@echo "both in one picture: $(CRAWL_DIR)/report/loss.png"

lint: .venv/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/codespell README.md CHANGELOG.md CONTRIBUTING.md docs focuscrawl
	$(BIN)/python .ci/prose.py

test: lint beside
	$(BIN)/pytest -n 4 --dist loadscope --no-loadscope-reorder --ignore tests/docs

test-long: .venv/.installed beside
	$(BIN)/pytest -n 4 --dist loadscope -m long

# what tests start beside .venv
beside:
	@.ci/programs
	@$(MAKE) --no-print-directory .venv-pywb/.installed || \
		echo "the test that serves an archive with pywb will be skipped, as it cannot be installed"
	@$(MAKE) --no-print-directory .venv-replay/.installed || \
		echo "the test that displays an archive will be skipped, as ReplayWeb.page cannot be installed"
	@$(MAKE) --no-print-directory .venv-spark/.installed || \
		echo "tests of rounds on Apache Spark will be skipped, as it cannot be installed"
	@$(MAKE) --no-print-directory .venv-s3/.installed || \
		echo "the tests on S3 will be skipped, as no server of it can be installed"

test-oldest: .venv-oldest/.installed
	.venv-oldest/bin/pytest -n 4 --dist loadscope -m "long or not long" $(SCRAPY_TESTS)

bench: .venv/.installed
	$(BIN)/pytest benchmarks -p no:xdist -s -q --timeout 0 --benchmark-columns=median,iqr,rounds

endurance: .venv/.installed
	FOCUSCRAWL_ENDURANCE=1 $(BIN)/pytest tests/endurance -n 0 -s --timeout 14400

fuzz: .venv/.installed
	@$(BIN)/$(LOCKED) --requirement locks/fuzz.txt
	cd tests && ../$(BIN)/python -m fuzz $(FUZZ) $(FUZZ_SECONDS)

deploy-check: .venv/.installed
	$(BIN)/pytest tests/integration/test_scrapyd.py -m "long or not long" -v --no-header -p no:xdist

extras:
	@$(PYTHON) .ci/extras $(EXTRAS)

# what builds the documentation, beside .venv
.venv-docs/.installed: locks/docs.txt
	@$(PYTHON) -m venv $(@D)
	@echo "installing into $(@D) ..."
	@$(@D)/bin/$(LOCKED) --requirement locks/docs.txt
	@touch $@

docs: .venv/.installed .venv-docs/.installed
	.venv-docs/bin/zensical build --strict --clean --config-file mkdocs.yml
	$(BIN)/pytest -n 2 --dist loadgroup tests/docs

docs-serve: .venv-docs/.installed
	.venv-docs/bin/zensical serve --config-file mkdocs.yml

.venv-lock/.installed: locks/lock.txt
	@$(PYTHON) -m venv $(@D)
	@$(@D)/bin/$(LOCKED) --requirement locks/lock.txt
	@touch $@

# what is locked stays as it is, but for what pyproject.toml admits no longer
lock: .venv-lock/.installed
	$(COMPILE) $(LOCK_OPTIONS) pyproject.toml --extra all --group dev --output-file locks/dev.txt
	@sed -nE 's/^([^ #]+==[^\\]*[^ \\]) *\\?$$/\1/p' locks/dev.txt >$(PINS)
	$(COMPILE) pyproject.toml $(SERVER:%=--extra %) --group server --constraint $(PINS) \
		--output-file locks/server.txt
	echo hatchling | $(COMPILE) - --constraint $(PINS) --output-file locks/build.txt
	$(COMPILE) $(LOCK_OPTIONS) --group docs --output-file locks/docs.txt
	$(COMPILE) $(LOCK_OPTIONS) --group fuzz --output-file locks/fuzz.txt
	$(COMPILE) $(LOCK_OPTIONS) --group lock --output-file locks/lock.txt
	$(COMPILE) $(LOCK_OPTIONS) --group pywb --no-emit-package surt --output-file locks/pywb.txt
	$(COMPILE) $(LOCK_OPTIONS) --group s3 --output-file locks/s3.txt
	echo surt | $(COMPILE) $(LOCK_OPTIONS) - --no-deps --output-file locks/surt.txt
	$(COMPILE) $(LOCK_OPTIONS) --group spark --no-emit-package pyspark --output-file locks/spark.txt
	echo pyspark | $(COMPILE) $(LOCK_OPTIONS) - --no-deps --output-file locks/pyspark.txt
	@sed -i.bak -E '/^twisted==/d; /^scrapy-playwright==/d; s/^scrapy==.*/scrapy==$(OLDEST_SCRAPY)/' $(PINS)
	$(COMPILE) pyproject.toml --extra all --group dev --constraint $(PINS) \
		--output-file locks/oldest-scrapy.txt

notebooks: .venv/.installed
	cd notebooks && ../$(BIN)/python -m jupyter execute --inplace *.ipynb

clean:
	rm -rf .venv .venv-docs .venv-oldest .venv-lock .venv-pywb .venv-replay .venv-s3 .venv-spark .mypy_cache .ruff_cache .pytest_cache .hypothesis .benchmarks build dist

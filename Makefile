# make crawl: a focused crawl of the synthetic web, to see what focuscrawl does
# make test : lint, types, layers and the whole test suite, with the newest Scrapy
# make test-oldest: tests of what is built on Scrapy, with the oldest one that pyproject.toml admits
# make lint     : the linter, the type checker and the layers alone
# make docs     : the examples of the docs, and whether the docs name what there is
# make bench    : the benchmarks, see docs/benchmarks.md
# make endurance: kills, full disks and power cuts by the dozen, and a crawl of 100,000 pages
# make fuzz     : looks for bytes that break pages, URLs, recordings or topic trees, a minute each
# make deploy-check: the steps of docs/deploy.md on a Scrapyd of this machine
# Needs make and Python 3.11 or newer (make PYTHON=...); all else is installed into .venv
# (and .venv-oldest).

PYTHON ?= python3
BIN := .venv/bin
OLDEST_SCRAPY := $(shell sed -nE 's/^ *"scrapy>=([0-9.]+)".*/\1/p' pyproject.toml)
SCRAPY_TESTS := $(wildcard tests/unit/test_addon_*.py tests/unit/test_engine_*.py \
	tests/unit/test_extensions_*.py tests/integration/test_addon.py \
	tests/integration/test_bad_web_*.py tests/integration/test_crawl_*.py \
	tests/integration/test_operations.py tests/integration/test_pipelines.py \
	tests/integration/test_revisit_hubs.py tests/integration/test_security_*.py \
	tests/integration/test_workers_parts.py)
FUZZ_SECONDS ?= 60
TOPIC ?= /Sports/Cycling
BUDGET ?= 140
ifndef CRAWL_DIR
CRAWL_DIR := crawls/demo-$(shell date +%Y%m%d-%H%M%S)
endif

.PHONY: crawl test test-oldest lint bench endurance fuzz docs deploy-check clean

.venv/.installed .venv-oldest/.installed: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "focuscrawl needs Python 3.11 or newer: make PYTHON=/path/to/it"; exit 2; }
	@$(PYTHON) -m venv $(@D) || \
		{ echo "this Python cannot make environments (on Debian: apt-get install python3-venv)"; exit 2; }
	@echo "installing into $(@D) ..."
	@$(@D)/bin/pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	@sed $(CONSTRAIN) constraints.txt >$(@D)/constraints.txt
	@$(@D)/bin/pip install --quiet --constraint $(@D)/constraints.txt --editable ".[all]" --group dev
	@touch $@

# of Twisted the oldest Scrapy gets the newest that it admits
.venv-oldest/.installed: CONSTRAIN = -E '/^Twisted==/d; s/^Scrapy==.*/Scrapy==$(OLDEST_SCRAPY)/'
.venv/.installed: CONSTRAIN = ''

crawl: .venv/.installed
	@$(BIN)/scrapy crawl focused -a web=demo -a topic=$(TOPIC) -a seeds=models/demo/seeds.csv \
		-a budget=$(BUDGET) -a crawl_dir=$(CRAWL_DIR)
	@$(BIN)/focuscrawl report $(CRAWL_DIR) | tail -n 1

lint: .venv/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: lint
	$(BIN)/pytest -n 2 --dist loadscope

test-oldest: .venv-oldest/.installed
	.venv-oldest/bin/pytest -n 2 --dist loadscope $(SCRAPY_TESTS)

bench: .venv/.installed
	$(BIN)/pytest benchmarks -p no:xdist -s -q --timeout 0 --benchmark-columns=median,iqr,rounds

endurance: .venv/.installed
	FOCUSCRAWL_ENDURANCE=1 $(BIN)/pytest tests/endurance -n 0 -s --timeout 14400

fuzz: .venv/.installed
	@$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --group fuzz
	cd tests && ../$(BIN)/python -m fuzz all $(FUZZ_SECONDS)

deploy-check: .venv/.installed
	$(BIN)/pytest tests/integration/test_scrapyd.py -v --no-header -p no:xdist

docs: .venv/.installed
	$(BIN)/pytest tests/docs

clean:
	rm -rf .venv .venv-oldest .mypy_cache .ruff_cache .pytest_cache .hypothesis .benchmarks build dist

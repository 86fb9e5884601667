# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
export OMP_NUM_THREADS ?= 1

.DEFAULT_GOAL := help
.PHONY: help setup demo demo-full test lint type contracts fast triton slow gpu interop faults cluster oldest release bench docs gap chromium script npm clean

help: ## list these commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: $(INSTALLED) ## create .venv and install grokscope with its development tools

$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "grokscope needs Python 3.11 or newer; name one with: make PYTHON=python3.11 ..."; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || \
	  { echo "could not create $(VENV); on Debian install it with: apt-get install python3-venv"; exit 1; }
	@echo "installing into $(VENV) (a few minutes the first time)"
	@$(BIN)/python -m pip install --quiet --upgrade pip
	@$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev,data]'
	@touch $@

SMALL := --layers 1 --width 64 --heads 2 --mlp-width 128 --batch-size 128 --learning-rate 0.003 --train-fraction 0.6 \
  --steps 3000 --evaluate-every 25 --checkpoint-every 250

demo: setup ## minutes: three small networks learn addition mod 31, one is forked at other weight decays; then a report
	@$(BIN)/grokscope train add_mod31 --seeds 42,0,1 $(SMALL) --fork-points 200 --out runs/demo
	@$(BIN)/grokscope fork runs/demo add_mod31_s42 --at 200 --weight-decay 2 3
	@echo
	@$(BIN)/grokscope list runs/demo
	@echo
	@$(BIN)/grokscope show runs/demo
	@echo
	@$(BIN)/grokscope report runs/demo --detail add_mod31_s42 --out runs/demo/report.html
	@printf '%s\n' '' 'What next:' '  source .venv/bin/activate' \
	  '  grokscope plot runs/demo add_mod31_s42 --out curves.pdf' \
	  '  grokscope fork runs/demo add_mod31_s42 --at 200 --weight-decay 0.5 5' \
	  '  make demo-full   # the network and task of the paper'

demo-full: setup ## ten minutes: the same with the network and task of the paper, addition mod 97
	@$(BIN)/grokscope train add_mod97 --seeds 42,0,1 --steps 6000 --stop-after-grokking 0 --fork-points 1000 --out runs/full
	@$(BIN)/grokscope fork runs/full add_mod97_s42 --at 1000 --weight-decay 2 3 --stop-after-grokking 0
	@echo
	@$(BIN)/grokscope list runs/full
	@echo
	@$(BIN)/grokscope show runs/full
	@echo
	@$(BIN)/grokscope report runs/full --detail add_mod97_s42 --out runs/full/report.html

test: lint type contracts fast ## lint, types, import contract and the fast tests

lint: setup script
	$(BIN)/ruff format --check src tests benchmarks examples packaging
	$(BIN)/ruff check src tests benchmarks examples packaging

# The page's script is checked by Biome, which npm installs into node_modules once; SKIP_JS=1 goes without.
BIOME := node_modules/.bin/biome
ifeq ($(SKIP_JS),1)
script:
	@echo "SKIP_JS=1: the page's script is not linted"
else
script: npm
	@test node_modules/.package-lock.json -nt package.json || \
	  npm install --silent --no-audit --no-fund --no-package-lock || \
	  { echo "npm could not install Biome, which lints the page's script; go without it with: make SKIP_JS=1 ..."; exit 1; }
	@$(BIOME) check --error-on-warnings
endif

npm:
	@command -v npm >/dev/null || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && \
	  { apt-get update -qq; apt-get install -y -qq npm >/dev/null 2>&1; } && command -v npm >/dev/null; } || \
	  { echo "linting the page's script needs npm; install it (sudo apt-get install npm) or use: make SKIP_JS=1 ..."; exit 1; }

type: setup
	$(BIN)/mypy

contracts: setup
	$(BIN)/lint-imports --no-logo

fast: setup chromium triton
	$(BIN)/python -m pytest -q -n 2 -rs

chromium:
	@command -v chromium >/dev/null || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && \
	  { apt-get update -qq; apt-get install -y -qq chromium >/dev/null 2>&1; } && command -v chromium >/dev/null; } || \
	  echo "no Chromium: the browser tests are skipped; install it with: sudo apt-get install chromium"

# CUDA kernels are tested on a CPU by Triton's interpreter and compiler.
triton: setup
	@$(BIN)/python -c 'import triton' 2>/dev/null || { echo "installing Triton, for the tests of CUDA kernels"; \
	  $(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[kernels]'; } || \
	  echo "no Triton: the tests of CUDA kernels are skipped; install it with: pip install triton"

slow: setup gap triton ## minutes-long tests, the notebook and the documentation, and a comparison with a fresh run of GAP
	@$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[docs]'
	$(BIN)/python -m pytest -q -m slow

gpu: setup triton ## what only a CUDA device can show
	$(BIN)/python -m pytest -q -m gpu

interop: setup ## the monitor inside Lightning, Hugging Face, torchmetrics, TransformerLens and nnsight; the trackers
	@$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[interop,trackers]'
	$(BIN)/python -m pytest -q -m interop

faults: setup ## inject every fault for real, clusters and remote stores included; prints injected, survived, lost
	@$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[slurm,ray,remote,faults]'
	@$(BIN)/python tests/faults/slurm.py install
	$(BIN)/python -m pytest -q -rs -m faults tests/faults

cluster: setup ## a Ray cluster of two nodes, a SLURM of one node and submitit's jobs, on this machine
	@$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[slurm,ray]'
	@$(BIN)/python tests/faults/slurm.py install
	$(BIN)/python -m pytest -q -rs -m cluster tests/faults

# In an environment of its own, with the oldest version of everything that pyproject.toml declares as needed.
OLDEST := .venv-oldest
OLDEST_OF := import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["dependencies"], sep="\n")
oldest: setup ## the fast tests with the oldest torch, numpy, scipy and other packages that are declared
	@test -x $(OLDEST)/bin/python || $(PYTHON) -m venv $(OLDEST)
	@$(BIN)/python -c '$(OLDEST_OF)' | sed 's/>=/==/' > $(OLDEST)/constraints.txt
	@$(OLDEST)/bin/python -m pip install --quiet --constraint $(OLDEST)/constraints.txt --editable '.[dev,data]'
	$(OLDEST)/bin/python -m pytest -q -n 2 -rs

release: setup ## check version, changelog, citation and tree, and build wheel and sdist into dist; uploads nothing
	@$(BIN)/python packaging/release.py

docs: setup ## build the documentation with the API reference; warnings are errors
	@$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[docs]'
	$(BIN)/python -m sphinx -b html -q -E -W --keep-going docs docs/_build/html
	@echo "open docs/_build/html/index.html"

gap:
	@command -v gap >/dev/null || { test "$$(id -u)" = 0 && apt-get update -qq && apt-get install -y -qq gap-core; } || \
	  { echo "make slow needs GAP; install it with: sudo apt-get install gap-core"; exit 1; }

bench: setup ## measure speed and memory; results go to benchmarks/results
	$(BIN)/python -m benchmarks.groups
	$(BIN)/python -m benchmarks.training
	$(BIN)/python -m benchmarks.measures
	$(BIN)/python -m benchmarks.scale
	$(BIN)/python -m benchmarks.monitor
	$(BIN)/python -m benchmarks.listing
	$(BIN)/python -m benchmarks.report
	$(BIN)/python -m benchmarks.coverage
	$(BIN)/python -m benchmarks.page

clean: ## remove everything that can be made again
	rm -rf $(VENV) $(OLDEST) build dist docs/_build src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache node_modules
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

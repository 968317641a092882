# One verb each; every target runs alone from a fresh clone. `make help` lists them.
SHELL := /bin/bash
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DATA ?= .suiro
SOURCES := clients cluster spark_connector tests bench proto
# Benchmarks and cluster tests run alone, also when several people share a machine.
ALONE := flock $${TMPDIR:-/tmp}/suiro.bench.lock

.DEFAULT_GOAL := help
.PHONY: help setup gen gen-check fmt check test test-fast rewrite raft-sim replication-sim replication-faults nets group-sim txn-sim txn-model bench spark fuzz up down clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  %-12s %s\n", $$1, $$2}'

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev,spark]'
	@touch $@

setup: $(READY) ## make .venv and install everything into it

gen: $(READY) ## generate Python from the .proto files
	$(BIN)/python proto/generate.py

gen-check: $(READY) ## fail if the generated Python is not what the .proto files say
	$(BIN)/python proto/generate.py --check

fmt: $(READY) ## format the code
	$(BIN)/ruff format $(SOURCES)
	$(BIN)/ruff check --fix $(SOURCES)

check: $(READY) gen-check ## format, lint, types, layers
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/mypy
	$(BIN)/lint-imports

nets: ## what cutting networks apart needs, from Debian; tests say why they skip where it is absent
	@{ command -v ip && command -v nft; } >/dev/null || { [ $$(id -u) = 0 ] \
		&& apt-get install --yes --quiet iproute2 nftables; } || true

test: check nets ## everything that a fresh machine can run
	$(ALONE) $(MAKE) --no-print-directory test-fast
	$(ALONE) $(BIN)/pytest -m "(cluster or spark) and not (chaos or slow)"

test-fast: $(READY) ## what needs no real processes
	$(BIN)/pytest -n 2 --dist loadgroup -m "not (cluster or chaos or spark or slow)"

rewrite: $(READY) ## write the transcripts anew from what the cores do now; read the diff
	SUIRO_REWRITE=1 $(BIN)/pytest tests/datadriven

N ?= 20000
raft-sim: $(READY) ## N seeds of the Raft simulation
	$(BIN)/python -m tests.sim.raft_sim --seeds $(N) --jobs 2

replication-sim: $(READY) ## N seeds of the replication simulation
	$(BIN)/python -m tests.sim.replication_sim --seeds $(N) --jobs 2

replication-faults: $(READY) nets ## 100 killed leaders, cut networks, rolling restarts, 4,000 partitions
	$(ALONE) $(BIN)/python -m tests.cluster.replication_kill --kills 100
	$(ALONE) $(BIN)/python -m tests.cluster.replication_partition
	$(ALONE) $(BIN)/python -m tests.cluster.replication_roll
	$(ALONE) $(BIN)/python -m tests.cluster.replication_scale --brokers 1
	$(ALONE) $(BIN)/python -m tests.cluster.replication_scale --brokers 3

txn-sim: $(READY) ## N seeds of the transaction simulation
	$(BIN)/python -m tests.sim.txn_sim --seeds $(N) --jobs 2

txn-model: $(READY) ## a million states of the transaction protocol, every order of events
	$(BIN)/python -m tests.model.txn_model --states 1100000 --inits 2 --begun 2

group-sim: $(READY) ## N seeds of the consumer group simulation
	$(BIN)/python -m tests.sim.group_sim --seeds $(N) --jobs 2

fuzz: $(READY) ## a million malformed batches for the decoder
	$(BIN)/python -m tests.fuzz.decoder --count 1000000

bench: $(READY) ## measure, print a table, write bench/results/*.json
	$(ALONE) $(BIN)/python -m bench

spark: $(READY) ## Spark in full: through Connect too, and the sink through every fault
	$(ALONE) $(BIN)/pytest -m spark tests/spark
	$(ALONE) $(BIN)/python -m tests.spark.kill_matrix

up: $(READY) ## start a cluster on this machine, in the background
	@$(BIN)/suiro up --background --data-dir $(DATA)

down: $(READY) ## stop what `make up` started
	@$(BIN)/suiro down --data-dir $(DATA)

clean: ## remove what was built; data directories stay
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist

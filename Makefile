# One verb each; every target runs alone from a fresh clone. `make help` lists them.
SHELL := /bin/bash
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DATA ?= .suiro
SOURCES := clients cluster spark_connector examples tests bench proto
# Benchmarks and cluster tests run alone, also when several people share a machine.
ALONE := flock $${TMPDIR:-/tmp}/suiro.bench.lock

.DEFAULT_GOAL := help
.PHONY: help setup gen gen-check fmt check test test-fast rewrite chaos mutants sim sim-many raft-sim replication-sim replication-faults nets group-sim txn-sim txn-model bench spark demo fuzz up down clean
.PHONY: tools image compose-up compose-down container-test k8s-roll

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

tools: ## what more some tests need, from Debian: Prometheus for alerts, faketime for wrong clocks
	@{ command -v promtool && ls /usr/lib/*/faketime/libfaketime.so.1; } >/dev/null 2>&1 || { [ $$(id -u) = 0 ] \
		&& apt-get install --yes --quiet --no-install-recommends prometheus libfaketime; } || true

test: check nets tools ## everything that a fresh machine can run
	$(ALONE) $(MAKE) --no-print-directory test-fast
	$(ALONE) $(BIN)/pytest -m "(cluster or spark) and not (chaos or slow)"

test-fast: $(READY) ## what needs no real processes
	$(BIN)/pytest -n 2 --dist loadgroup -m "not (cluster or chaos or spark or slow or container)"

rewrite: $(READY) ## write the transcripts anew from what the cores do now; read the diff
	SUIRO_REWRITE=1 $(BIN)/pytest tests/datadriven

MINUTES ?= 10
BACKEND ?= processes
chaos: $(READY) nets $(if $(filter docker,$(BACKEND)),image) ## every fault for MINUTES, everything checked; writes chaos.html; BACKEND=docker: containers
	$(ALONE) $(BIN)/python -m tests.chaos.run --minutes $(MINUTES) --backend $(BACKEND)

mutants: $(READY) ## every planted bug: who catches it, in how many seeds, which rows that covers
	$(BIN)/python -m tests.mutants.run

SEED ?= 0
sim: $(READY) ## one seed of the whole system on virtual time, with its story: make sim SEED=7
	$(BIN)/python -m tests.sim.swarm --seed $(SEED)

WHOLE_SEEDS := $(or $(N),2000)
sim-many: $(READY) ## N seeds of the whole system (2,000 unless told)
	$(BIN)/python -m tests.sim.swarm --seeds $(WHOLE_SEEDS) --jobs 2

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

fuzz: $(READY) ## a million malformed batches for the decoder, 100,000 malformed requests for a node
	$(BIN)/python -m tests.fuzz.decoder --count 1000000
	$(BIN)/python -m tests.fuzz.rpcs --count 100000

bench: $(READY) ## measure, print a table, write bench/results/*.json
	$(ALONE) $(BIN)/python -m bench

spark: $(READY) ## Spark in full: through Connect too, and the sink through every fault
	$(ALONE) $(BIN)/pytest -m spark tests/spark
	$(ALONE) $(BIN)/python -m tests.spark.kill_matrix
	$(ALONE) $(BIN)/python -m tests.spark.driver_kills

SPARK ?= local
demo: $(READY) ## the pipeline on Spark, through a crash, checked; SPARK=cluster: on a Spark cluster
	$(ALONE) $(BIN)/python -m examples.pipeline.demo --spark $(SPARK)

up: $(READY) ## start a cluster on this machine, in the background
	@$(BIN)/suiro up --background --data-dir $(DATA)

down: $(READY) ## stop what `make up` started
	@$(BIN)/suiro down --data-dir $(DATA)

image: $(READY) ## build the container image suiro:latest; the base is made by debootstrap, or is BASE=…
	@why=$$(container/engine.sh --install) && container/image.sh $(BIN)/python || { echo "$${why:-the image was not built}"; exit 1; }

compose-up: ## start the cluster of compose.yaml, and wait until every node is ready
	docker-compose --project-name suiro up --detach
	@for name in $$(docker-compose --project-name suiro ps -q); do \
		for _ in $$(seq 60); do docker exec $$name suiro node probe ready >/dev/null 2>&1 && continue 2; sleep 1; done; \
		echo "$$(docker inspect --format '{{.Name}}' $$name) is not ready: see docker logs"; exit 1; done
	@echo "Suiro is up at suiro://172.30.97.21,172.30.97.22,172.30.97.23"

compose-down: ## stop it; volumes stay (`docker-compose --project-name suiro down --volumes` removes them)
	docker-compose --project-name suiro down

container-test: image ## the image and compose.yaml: killed containers lose nothing
	$(ALONE) $(BIN)/pytest -m container tests/container

k8s-roll: $(READY) nets ## roll every StatefulSet of the manifests as processes, under load
	$(ALONE) unshare --mount $(BIN)/python -m tests.k8s.roll

clean: ## remove what was built; data directories stay
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist

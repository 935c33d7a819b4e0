# The targets people use; `make` alone lists them.
SHELL := /bin/bash
BIN := bin
LINT_VERSION := v2.15.0
LINT := $(BIN)/golangci-lint
# Of the generated code that is committed; protoc is Debian's protobuf-compiler, 3.21.12.
PROTOC_GEN_GO_VERSION := v1.36.12
PROTOC_GEN_GO_GRPC_VERSION := v1.6.2
ARGS ?=
# What the tests start: built once, not by each package; a server with the race detector, say, is named instead.
ANTIPODE_BINARY ?= $(CURDIR)/$(BIN)/antipode
CLUSTER_DATA ?= ./antipode-cluster
RUNS ?= 100
SEED ?= 0
STALLS ?= 1
DURATION ?= 2m
RACE_SKIP ?=
ROUNDS ?= 5
FIGURES ?=
RUN ?= .
FUZZTIME ?= 10s
PACKAGES ?= ./...
FIGURES_DIR ?= .
# Of the package: below every release while it is made from a commit.
VERSION ?= 0.0~git$(shell git rev-list --count HEAD).$(shell git rev-parse --short HEAD)
PACKAGE_FLAGS ?= -trimpath
# Whose package it is. The default names nobody, under a domain that can never exist (RFC 2606).
MAINTAINER ?= Nobody, built from source <nobody@antipode.invalid>
DIST ?= dist

.DEFAULT_GOAL := help
.PHONY: run cluster cluster-stop drill dashboards help build generated test check unit sim sim-bugs e2e race slow lint fmt fuzz bench nightly stress faults slowlink redundancy rolling clocks sites starved hostile overwrites copies alerts tools figures screens package deploy-check proto clean

##@ Run it

run: build ## build and run both locations on this machine (ARGS="--port-base 20000")
	$(BIN)/antipode dev $(ARGS)

cluster: build ## build and run both locations as node processes (CLUSTER_DATA, ARGS="--port-base 20000 --witness")
	$(BIN)/antipode cluster start --dir $(CLUSTER_DATA) $(ARGS)

cluster-stop: ## stop them; their data stays
	$(BIN)/antipode cluster stop --dir $(CLUSTER_DATA)

drill: build ## a failover of the account of make run to its other location and back, measured; drill.html has a picture
	$(BIN)/antipodectl drill devstoreaccount1 --yes --html drill.html

dashboards: build ## both locations under load, a Prometheus, and the dashboards at http://127.0.0.1:13000/: DURATION=2m
	go test -count=1 -timeout 24h ./test -v -run TestNoPanelIsEmpty -args -dashboards=127.0.0.1:13000 -show=$(DURATION) -html=$(CURDIR)/dashboards.html

##@ Build and test

help: ## list the targets
	@awk -F':.*## ' '/^##@ /{printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

build: ## build the server and the ops CLI into bin/
	go build -o $(BIN)/ ./cmd/...

generated: ## write the pages and lint rules that tests compare; then read the diff
	go test -count=1 ./api/operation ./cmd/antipode ./cmd/antipodectl ./server/config ./server/operator -run 'TestReference$$|TestUnbuilt' -args -rewrite
	go test -count=1 ./docs -args -rewrite

test: unit sim sim-bugs e2e ## everything that must hold, but lint and race detector

check: ## format, lint and short tests: before each commit
	$(MAKE) lint
	go test -short $$(go list ./... | grep -v '^antipode/test')

# server/dev waits for timers of whole locations most of its minutes: it begins first.
unit: build ## tests of all packages
	ANTIPODE_BINARY=$(ANTIPODE_BINARY) go test -parallel 4 -timeout 30m antipode/server/dev \
		$$(go list ./... | grep -v -e '^antipode/test' -e '^antipode/sim$$' -e '^antipode/server/dev$$')

sim: ## both locations under faults and virtual time, RUNS=100 seeds; SEED=7 replays one
	go test -count=1 -timeout 60m ./sim -v -args -runs=$(RUNS) -seed=$(SEED) -stalls=$(STALLS)

sim-bugs: ## the simulator catches each planted bug
	go test -count=1 -timeout 60m -tags plantedbugs ./sim -v -run TestPlanted

e2e: build ## end-to-end tests against the real binary
	ANTIPODE_BINARY=$(ANTIPODE_BINARY) go test -count=1 -timeout 20m $$(go list ./test/... | grep -v -e /hostile -e /starved)
	# Alone: they starve whatever runs beside them.
	ANTIPODE_BINARY=$(ANTIPODE_BINARY) go test -count=1 -timeout 12m -p 1 ./test/hostile ./test/starved

# The race detector crashes where timers of one synctest bubble run on two processors at once
# (https://go.dev/issue/78156), so packages whose tests use it get one each.
race: ## the race detector on every package but the end-to-end tests, and but RACE_SKIP='/bench|/sim'
	@mkdir -p $(BIN)
	go list -f '{{.ImportPath}} {{.TestImports}} {{.XTestImports}}' ./... | grep -v '^antipode/test' \
		$(if $(RACE_SKIP),| grep -vE '^[^ ]*($(RACE_SKIP)) ') >$(BIN)/race.packages
	go test -race -short -parallel 1 -cpu 1 -timeout 30m $$(grep testing/synctest $(BIN)/race.packages | cut -d ' ' -f 1)
	go test -race -short -parallel 1 -timeout 30m $$(grep -v testing/synctest $(BIN)/race.packages | cut -d ' ' -f 1)

slow: ## the 20 slowest tests of PACKAGES=./..., in seconds
	@set -o pipefail; go test -count=1 -json $(PACKAGES) | \
		sed -nE 's/.*"Action":"(pass|fail)","Package":"([^"]*)","Test":"([^"]*)","Elapsed":([0-9.e-]+).*/\4 \1 \2 \3/p' | \
		sort -rg | head -n 20

lint: $(LINT) ## formatting and lint, the house rules included
	$(LINT) run ./...
	cd deploy/check && $(CURDIR)/$(LINT) run ./...

$(LINT):
	GOBIN=$(CURDIR)/$(BIN) go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION)

fmt: $(LINT) ## format
	$(LINT) fmt ./...

fuzz: ## every fuzz target for FUZZTIME=10s, one after the other
	@set -e; grep -rn --include='*_test.go' -oE '^func Fuzz[A-Za-z0-9_]*' . | sed -E 's/:[0-9]+:func /:/' | sort | while IFS=: read -r file name; do \
		go test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) "./$$(dirname $$file)" < /dev/null; done

bench: ## benchmarks of the packages
	go test -run '^$$' -bench . -benchmem ./...

##@ Longer tests, each alone on the machine

nightly: ## what is too long for each change, in hours: more seeds, everything under the race detector, and the long forms of the end-to-end tests
	$(MAKE) sim RUNS=300 STALLS=5
	$(MAKE) race
	go test -race -count=1 -timeout 3h ./sim -args -runs=20
	$(MAKE) faults slowlink redundancy rolling clocks sites hostile starved overwrites copies tools
	$(MAKE) screens && git diff --exit-code -- docs/screens.md

stress: ## 1000 simulated runs, 20 of each cause of a stall, the narrow link and failovers, by hand, an hour; what they came to goes into docs/runs
	$(MAKE) sim RUNS=1000 STALLS=20
	$(MAKE) slowlink DURATION=2m
	$(MAKE) redundancy RUN='TestR19Planned|TestR20Unplanned|TestR21Pause|QueuesUnderLoad'

faults: ## node processes killed, paused, cut off and slowed under load: DURATION=2m, ROUNDS=5, SEED=0
	go test -count=1 -timeout 6h ./test/faults -v -args -duration=$(DURATION) -rounds=$(ROUNDS) -seed=$(SEED)

slowlink: ## node processes on a narrow, cut or half cut link, and without one range's quorum: DURATION=2m of each
	go test -count=1 -timeout 6h ./test/slowlink -v -args -duration=$(DURATION)

redundancy: ## each redundancy change, 100 failovers, 50 promotions, one with disks 10 minutes older, and 75 pauses under load, the copy of 1 GiB under kills: RUN=TestR20UnplannedUnderLoad plays that part; over an hour, 10 GB
	go test -count=1 -timeout 5h ./test/redundancy -v -run '$(RUN)' -args -objects=100000 -apart=10 -rate=20000000 -writers=45 -wait=30m -failovers=100 -pause=3s -unplanned=50 -promotes=10s -bound=2 -older=10m -older-rounds=1 -pauses=25 -rewound -moved=1.2

rolling: ## all six nodes and two gateways restarted one after the other under load, ROUNDS=5 times; no write pauses for 1 s
	go test -count=1 -timeout 3h ./test/rolling -v -args -turns=$(ROUNDS) -pause=1s

clocks: ## one node's clock stepped by ten minutes under load, 100 samples of Last Sync Time a second
	go test -count=1 -timeout 1h ./test/clocks -v -args -step=10s -rate=100

sites: ## whole locations set back, folders swapped, catalogs forked, clocks leapt, disks full and links cut under a failover: RUN=TestR6 plays a part
	go test -count=1 -timeout 2h ./test/sites -v -run '$(RUN)' -args -whole

starved: ## antipode dev starts on a starved machine, ROUNDS=10 on new folders and as many on used ones
	go test -count=1 -timeout 6h ./test/starved -v -args -rounds=$(ROUNDS) -nice=19

hostile: ## 260 hostile clients beside an honest one, whose p99 may grow four times: DURATION=2m
	go test -count=1 -timeout 1h ./test/hostile -v -args -duration=$(DURATION) -ratio=4

overwrites: ## 10 GiB through 1 GiB of names at both locations: the folder is below 12 GiB within five minutes
	go test -count=1 -timeout 2h ./server/dev -v -run TestOverwrittenPayloadComesBack -args -overwritten=10240

copies: ## 64 blocks of 4000 MiB at once from a server elsewhere: memory stays bounded; several minutes, and nothing on disk
	go test -count=1 -timeout 2h ./api -v -run TestCopiesFromElsewhereAreStreamed -args -copied=4000

alerts: ## the alerts of deploy/prometheus in a real Prometheus beside antipode dev under load: none may fire in DURATION=1h
	go test -count=1 -timeout 26h ./test/alerts -v -run TestNoAlertUnderLoad -args -duration=$(DURATION) -scale=1

tools: ## rclone, restic, azcopy, OpenTofu, pgBackRest, Thanos' store and 1000 contended locks, 1 GiB each; installs them, as root by apt-get: RUN=TestRestic plays a part
	test/tools/install.sh $(BIN)/tools
	go test -count=1 -timeout 3h ./test/tools -v -run '$(RUN)' -args -tools -bytes=1073741824 -cycles=1000 -cache=$(CURDIR)/$(BIN)/tools

figures: ## all figures of docs/performance.md, 52 minutes and 45 GB: FIGURES=recover takes those whose name begins so
	DIR=$(FIGURES_DIR) bench/figures.sh $(FIGURES)

##@ Deploy

package: ## dist/antipode_VERSION_ARCH.deb with units for systemd: VERSION=1.0.0, MAINTAINER='Name <address>'
	mkdir -p $(DIST)/build
	go build $(PACKAGE_FLAGS) -ldflags "-X main.version=$(VERSION)" -o $(DIST)/build/ ./cmd/antipode ./cmd/antipodectl
	deploy/package/shell.sh $(DIST)/build antipode antipodectl
	go build -C deploy/check -o $(abspath $(DIST))/build/nfpm github.com/goreleaser/nfpm/v2/cmd/nfpm
	VERSION=$(VERSION) MAINTAINER='$(MAINTAINER)' DIST=$(abspath $(DIST)) ARCH=$$(go env GOARCH) $(abspath $(DIST))/build/nfpm package \
		--config deploy/package/nfpm.yaml --packager deb --target $(abspath $(DIST))/

deploy-check: ## manifests of deploy/ by their schemas, and what they start as plain processes
	go test -C deploy/check -count=1 -timeout 20m .

##@ Upkeep

screens: build ## the screens of docs/screens.md from processes that are killed for it, in two minutes
	go run ./docs/screens -bin $(BIN)

proto: ## generate code from *.proto; needs protoc, which nothing else does
	GOBIN=$(CURDIR)/$(BIN) go install google.golang.org/protobuf/cmd/protoc-gen-go@$(PROTOC_GEN_GO_VERSION)
	GOBIN=$(CURDIR)/$(BIN) go install google.golang.org/grpc/cmd/protoc-gen-go-grpc@$(PROTOC_GEN_GO_GRPC_VERSION)
	PATH="$(CURDIR)/$(BIN):$$PATH" protoc --go_out=. --go_opt=module=antipode --go-grpc_out=. --go-grpc_opt=module=antipode \
		stamp/transport/wire/stamp.proto replication/pair/wire/pair.proto

clean: ## remove what was built (not the data)
	rm -rf $(BIN)

# Everything that a contributor does. Only Go is needed; the first call of a
# target fetches what it uses.
GO         ?= go
RACE       ?=
BENCHTIME  ?= 1s
FUZZTIME   ?= 30s
EVENTS     ?= 2400000
DATA       ?= $(or $(GRAPHD_DATA),graphd-data)
VERSION    := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS    := -s -w -X main.version=$(VERSION)

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.9.0

.PHONY: help build run test converge lint vuln bench soak fuzz generate clean

help: ## Say what can be made
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 12

build: ## Build bin/graphd, static
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/graphd ./cmd/graphd

run: build ## Build and serve on http://127.0.0.1:5000, log and graph in DATA
	./bin/graphd serve --data "$(DATA)"

test: ## Run every test (RACE=-race for the race detector)
	$(GO) vet ./...
	$(GO) test $(RACE) -count=1 -timeout 30m ./...

converge: ## Hold random streams, in any order and with crashes and faults, to one graph
	$(GO) test -count=1 -timeout 30m -run 'AnyOrder|StoredState' ./internal/lineage
	$(GO) test -count=1 -timeout 30m -run 'Converge|Faults|ManyChildren' ./internal/node

lint: ## Look for mistakes that compile
	$(GO) run $(STATICCHECK) ./...
	@test -z "$$(gofmt -l .)" || { echo "not formatted: $$(gofmt -l .)"; exit 1; }

vuln: ## Look for known vulnerabilities in what graphd uses
	$(GO) run $(GOVULNCHECK) ./...

bench: ## Measure what docs/performance.md says
	$(GO) test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) ./internal/jsontree ./schema ./internal/ingest ./internal/lineage
	$(GO) test -run '^$$' -bench . -benchtime 1000x -timeout 30m ./internal/node
	$(GO) test -run '^$$' -bench . -benchtime 1x -timeout 60m ./internal/namesearch ./internal/ledger

soak: build ## Send EVENTS events to a server and say what one costs
	$(GO) run ./internal/soak -events $(EVENTS)

fuzz: ## Fuzz each fuzz test for FUZZTIME
	@for f in $$(grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u); do \
		for t in $$(grep -rhoE '^func Fuzz[A-Za-z0-9_]+' $$f/*_test.go | sed 's/func //'); do \
			echo "== $$f $$t"; $(GO) test -run '^$$' -fuzz "^$$t$$" -fuzztime $(FUZZTIME) $$f || exit 1; \
		done; \
	done

generate: ## Write anew what is generated from code
	$(GO) generate ./...

clean: ## Remove what was built
	rm -rf bin

# make 3.81 (macOS) reads this too.

# A checkout that another user owns can be built too: git refuses to describe it.
export GOFLAGS := $(GOFLAGS) -buildvcs=false

.PHONY: help run test check verify bench profile fuzz audit generate clean up down load k6 bots

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' Makefile

run: ## start everything on this machine; ARGS="--crowd 100" adds shoppers
	@echo "building bin/linekeeper (the first time takes a minute) ..."
	@go build -o bin/linekeeper ./cmd/linekeeper
	@exec bin/linekeeper dev $(ARGS)

test: ## every test, on real Redis and Postgres, installed if need be; ARGS="-run Claim ./order/..."
	@scripts/test.sh $(ARGS)

check: ## format, vet, staticcheck, generated files, and the tests with -race
	@scripts/check.sh $(ARGS)

verify: ## show the promises under faults, 10 minutes; FAULTS=long DURATION=90s is more, LINEKEEPER_SEED=N again
	@scripts/verify.sh $(ARGS)

bench: ## measure the hot paths against handlers that do less, 12 minutes; BENCH=quick takes under 4
	@scripts/bench.sh $(ARGS)

profile: ## CPU and heap profiles of the product under load, in bin/profile; PROFILE=poll, enter or order
	@scripts/profile.sh

fuzz: ## feed every parser what a fuzzer makes, a minute each; FUZZTIME=10s ARGS=Ticket is less
	@scripts/fuzz.sh $(ARGS)

audit: ## modules, licences and known vulnerabilities of what the product is made of
	@scripts/audit.sh

generate: ## write the generated files again
	go generate ./...

up: ## the whole stack in containers, behind nginx on port 8080
	@scripts/compose.sh up

down: ## stop the containers; their data stay
	@scripts/compose.sh down

load: ## load what make run or make up has started; ARGS="burst --arrivals 10000 --html load.html"
	@scripts/load.sh $(ARGS)

k6: ## load what make run or make up has started, with k6; RATE=50 DURATION=1m is less for longer
	@scripts/k6.sh $(ARGS)

bots: ## write the table of docs/bots.md again: what each defence leaves to bots; ARGS="-bots 10000" is more of them
	go test ./test/bots -count 1 -timeout 60m -run TestTable -args -table $(ARGS)

clean: ## remove what make run and make test have made, orders and all
	@scripts/clean.sh

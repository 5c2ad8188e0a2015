# Everything a developer does here. `make` or `make help` lists it.
SHELL := bash
.DEFAULT_GOAL := help

.PHONY: help
help: ## list what there is
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-11s %s\n", $$1, $$2}'

.PHONY: run
run: ## start Signet on the embedded database
	go run ./cmd/signet start

.PHONY: build
build: ## build the static binary bin/signet
	CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o bin/signet ./cmd/signet

.PHONY: test
test: ## set up and pass every test: lint, drift, both engines, a browser, proxies, race detector
	scripts/test.sh

.PHONY: race
race: ## every test with the race detector, those of whole servers included; takes half an hour
	SIGNET_TEST_POSTGRES_FAST=1 scripts/with-browser.sh scripts/with-apache.sh scripts/with-proxies.sh scripts/with-postgres.sh go test -race -gcflags=modernc.org/sqlite/lib=-race=false -timeout 30m ./...

.PHONY: quick
quick: ## the tests without race detector, lint and drift check
	SIGNET_TEST_POSTGRES_FAST=1 scripts/with-browser.sh scripts/with-apache.sh scripts/with-proxies.sh scripts/with-postgres.sh go test ./...

.PHONY: lint
lint: ## vet, staticcheck, gofmt
	scripts/lint.sh

.PHONY: generate
generate: ## make gen/ and the list of operations from proto/
	scripts/generate.sh
	SIGNET_UPDATE_DOCS=1 go test -count=1 -run TestTheListOfOperations ./test/repo

.PHONY: console
console: ## generate clients, format, check, test and build the console into web/console/dist.zip, which the server embeds
	scripts/console.sh

.PHONY: console-dev
console-dev: ## hot reload of the console at http://localhost:5173/console/ against the server at SIGNET_URL (http://localhost:8080)
	scripts/console.sh --dev

.PHONY: driving
driving: ## drive the whole console in a browser: every view, role and language with every kind of data; every page in every language; what is too slow for make test
	CI=$${CI-true} SIGNET_TEST_POSTGRES_FAST=1 SIGNET_TEST_BROWSER=$${SIGNET_TEST_BROWSER-chromium} scripts/with-browser.sh scripts/with-postgres.sh go test -count=1 -timeout 90m -tags driving -run 'Driving' -v ./test/browser ./test/console

.PHONY: preview
preview: ## show every page with made-up data in every language
	go run ./test/preview

.PHONY: pictures
pictures: ## take a picture of every page and every view of the console, into .cache/pictures
	mkdir -p .cache/pictures
	scripts/with-browser.sh go test -count=1 -tags pictures -run TestPictures ./test/browser ./test/console

.PHONY: clients
clients: ## run other people's clients that are too heavy for make test, unmodified
	scripts/clients.sh

.PHONY: joining
joining: ## accept invitations and register in a browser, in all ways: what is too slow for make test
	CI=$${CI-true} scripts/with-browser.sh scripts/with-postgres.sh go test -count=1 -timeout 20m -tags joining -run 'Joining' -v ./test/browser

.PHONY: providers
providers: ## sign in through other people's identity providers in a browser: what is too slow for make test
	CI=$${CI-true} scripts/with-browser.sh scripts/with-proxies.sh go test -count=1 -timeout 20m -tags providers -run 'Provider' -v ./test/browser

.PHONY: release
release: ## make everything that is published with a version into dist: programs, image, packages, chart, SBOMs, checksums
	scripts/release.sh

.PHONY: deb image
deb: ## make the Debian package for the processor of this machine into dist
	scripts/package.sh deb
image: ## make the image for containers for the processor of this machine into dist
	scripts/package.sh image

.PHONY: release-check
release-check: ## make the release twice, in two places, and compare the bytes; takes half an hour
	scripts/release-check.sh

.PHONY: packages
packages: ## install, run, use and remove what the release makes: image, Debian package, unit, chart, compose files. Needs root and Debian
	scripts/packages.sh

.PHONY: fixtures
fixtures: ## make the data in test/upgrade/testdata with the version before
	SIGNET_UPDATE_FIXTURES=1 SIGNET_TEST_POSTGRES_FAST=1 scripts/with-postgres.sh go test -count=1 -run TestFixtures ./test/upgrade

.PHONY: fuzz
fuzz: ## fuzz everything that parses, FUZZTIME (30s) each
	scripts/fuzz.sh

.PHONY: crash
crash: ## 100 x kill -9 under load on each engine
	SIGNET_CRASH_ROUNDS=100 scripts/with-postgres.sh go test -count=1 -timeout 60m -run 'Crash' -v ./test/...

.PHONY: faults
faults: ## fail over a cluster of PostgreSQL under load, SIGNET_FAULTS_ROUNDS (4) times on each way to it; every store test behind PgBouncer
	SIGNET_FAULTS=1 SIGNET_TEST_POSTGRES_FAST=1 scripts/with-postgres.sh go test -count=1 -timeout 20m -run Faults ./internal/eventlog/store
	SIGNET_TEST_POSTGRES_FAST=1 scripts/with-postgres.sh go test -count=1 -timeout 20m -tags faults -run Faults -v ./test/program
	scripts/with-patroni.sh go test -count=1 -timeout 60m -tags faults -run Faults -v ./test/faults

.PHONY: alerts
alerts: ## check the alerts for Prometheus and try some of them; needs promtool (Debian package prometheus)
	promtool check rules packaging/prometheus/signet.rules.yaml
	promtool test rules packaging/prometheus/signet.test.yaml

.PHONY: cost
cost: ## processor time: nothing that a stranger sends costs much to read, and its cost grows with its length only; start-up; what times tell
	go test -count=1 -tags cost -run 'Costs|RefusedUnread' ./internal/...
	SIGNET_TEST_POSTGRES_FAST=1 scripts/with-postgres.sh go test -count=1 -timeout 20m -tags cost -run 'CostsMuch|HangsUp|Times' -v ./test/program

.PHONY: overload
overload: ## 640 callers of the dearest operations with a reader beside; 100,000 bad requests at every entry point
	SIGNET_BAD_REQUESTS=100000 go test -count=1 -timeout 20m -tags overload -run 'Overload|BadRequests' -v ./test/program

.PHONY: recovery
recovery: ## restore PostgreSQL from a base backup and WAL to a point in time, and check it
	CI=$${CI-true} scripts/with-postgres.sh go test -count=1 -timeout 10m -tags recovery -run Recovery -v ./test/recovery

.PHONY: rolling
rolling: ## restart three nodes one by one behind nginx and HAProxy under load, SIGNET_ROLLING_ROUNDS (2) times; upgrade three from the version before
	SIGNET_TEST_POSTGRES_FAST=1 scripts/with-proxies.sh scripts/with-postgres.sh go test -count=1 -timeout 30m -tags rolling -v ./test/rolling

.PHONY: scale
scale: ## the tests that have a full size at that size (a million events); takes up to an hour
	SIGNET_SCALE=1 SIGNET_TEST_POSTGRES_FAST=1 scripts/with-postgres.sh go test -count=1 -timeout 60m -run Scale -v ./...

.PHONY: bench
bench: ## measure the built binary on both engines; the table goes to bench/RESULTS.md
	scripts/with-postgres.sh go run ./bench

.PHONY: bench-against
bench-against: ## compare the working tree with a revision (REV, default: the commit in bench/RESULTS.md); ARGS=-quick is short
	scripts/with-postgres.sh go run ./bench -against $(or $(REV),last) $(ARGS)

.PHONY: bench-traces
bench-traces: ## measure what traces cost, off and at 1 %; BASE=FILE is another build to compare with
	go run ./bench -traces -rounds 12 -time 24s -callers 64 $(if $(BASE),-base $(BASE))

.PHONY: trace-pictures
trace-pictures: ## draw the pictures of docs/operations/tracing.md from the spans of a real server
	go test -count=1 -tags pictures -run TestTracePictures ./test/traces

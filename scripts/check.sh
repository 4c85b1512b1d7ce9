#!/usr/bin/env bash
# Everything a change must pass: format, vet, staticcheck, generated files, and
# all tests under the race detector.
set -euo pipefail
cd "$(dirname "$0")/.."
export GOFLAGS="${GOFLAGS:-} -buildvcs=false"

step() { echo "== $1 ($SECONDS s)"; }

if ! command -v "$(go env CC)" >/dev/null; then
  echo "the race detector needs a C compiler: sudo apt-get install -y gcc libc6-dev" >&2
  exit 1
fi

step "format"
unformatted=$(gofmt -l .)
if [ -n "$unformatted" ]; then
  printf 'not formatted, run gofmt -w on:\n%s\n' "$unformatted" >&2
  exit 1
fi
step "vet"
go vet ./...
step "build for macOS"
CGO_ENABLED=0 GOOS=darwin go build ./...
step "vet of the build with faults"
go run ./test/fault/overlay -dir bin/.overlay
go vet -tags faults -overlay bin/.overlay/overlay.json ./test/...
step "staticcheck"
go tool -modfile=tools/go.mod staticcheck ./...
go tool -modfile=tools/go.mod staticcheck -tags faults ./test/...
step "generated files"
scripts/generated.sh
step "tests with the race detector"
scripts/test.sh -race "$@"
step "all passed"

#!/usr/bin/env bash
# Runs every test on real Redis and Postgres. Arguments go to go test: -race,
# -run, other packages. What is missing is installed, skips are listed at the
# end, and with CI set a skip for want of a program fails.
set -euo pipefail
cd "$(dirname "$0")/.."

# A checkout that another user owns can be tested too: git refuses to describe it.
export GOFLAGS="${GOFLAGS:-} -buildvcs=false"

packages=./...
for arg in "$@"; do
  case $arg in ./*) packages= ;; esac
done

echo "building the test runner ..."
go build -o bin/suite ./test/harness/suite
# -count=1: the servers are part of the result, and the cache can't see them.
exec bin/suite -count=1 "$@" ${packages:+"$packages"}

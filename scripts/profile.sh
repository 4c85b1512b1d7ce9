#!/usr/bin/env bash
# Loads the product for 15 s and leaves its CPU and heap profiles in bin/profile/.
# PROFILE is the path that is loaded: poll, enter or order.
set -euo pipefail
cd "$(dirname "$0")/.."
export GOFLAGS="${GOFLAGS:-} -buildvcs=false"

echo "building the product and the load ..."
mkdir -p bin/profile
go build -o bin/profile/linekeeper ./cmd/linekeeper
go build -o bin/profile/bench ./test/bench
exec bin/profile/bench -binary bin/profile/linekeeper -dir bin/profile profile "${PROFILE:-poll}"

#!/usr/bin/env bash
# Shows the promises under faults, with a build of the product that keeps a
# journal and can be made to fail. Arguments go to the test binary: -test.run
# Procs, -test.v. FAULTS=long goes on for DURATION per history; LINEKEEPER_SEED
# repeats a run. The last line is the sum of what was shown.
set -euo pipefail
cd "$(dirname "$0")/.."
export GOFLAGS="${GOFLAGS:-} -buildvcs=false"
export FAULTS="${FAULTS:-quick}"
export LINEKEEPER_VERIFY_BIN="$PWD/bin/verify/linekeeper"

case $FAULTS in
  quick) limit=15m ;;
  long) limit=0 ;;
  *) echo "FAULTS is quick or long, not $FAULTS" >&2; exit 2 ;;
esac

echo "building the product with faults, and the tests ..."
mkdir -p bin/verify
go run ./test/fault/overlay -dir bin/.overlay
overlay=bin/.overlay/overlay.json
product=$overlay
if [ "$FAULTS" = long ]; then
  # A standard library whose wall clock can be wrong has to be compiled first.
  product=bin/.overlay/clock.json
  go run ./test/fault/wallclock -overlay "$overlay" -o "$product"
  export LINEKEEPER_VERIFY_CLOCKS=1
fi
go build -tags faults -overlay "$product" -o "$LINEKEEPER_VERIFY_BIN" ./cmd/linekeeper
go test -c -tags faults -overlay "$overlay" -o bin/verify/verify.test ./test/verify
# Without the overlay: its journal would be part of what is measured.
go test -c -tags faults -o bin/verify/rate.test ./test/rate
go test -c -tags faults -o bin/verify/hostile.test ./test/hostile

echo "trying what the proof stands on: the journal, the mutants, the checker ..."
go test -count=1 -tags faults -overlay "$overlay" ./test/fault/point ./test/history

echo "measuring rates, beside nothing else ..."
(cd test/rate && ../../bin/verify/rate.test -test.timeout "$limit" "$@")

echo "attacking as one client could ..."
(cd test/hostile && ../../bin/verify/hostile.test -test.timeout "$limit" "$@")

echo "verifying (FAULTS=$FAULTS) ..."
cd test/verify
# Most tests wait most of the time.
exec ../../bin/verify/verify.test -test.timeout "$limit" -test.parallel 8 "$@"

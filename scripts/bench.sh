#!/usr/bin/env bash
# Measures the hot paths against handlers that do less. BENCH=quick takes under
# four minutes; BENCH=full (the default) some twelve, and writes docs/benchmarks.md
# and its plots; PAGE=yes has a quick run write them too, PAGE=no keeps a full one
# from it. The last lines are the figures; all of them are in bin/bench/result.json.
# ARGS="-only PART" measures a part and writes no page, but for scale: that is
# measured only where it is asked for, and goes to docs/scaling.md.
set -euo pipefail
cd "$(dirname "$0")/.."
export GOFLAGS="${GOFLAGS:-} -buildvcs=false"

BENCH=${BENCH:-full}
case $BENCH in
  quick) page=${PAGE:-no} ;;
  full) page=${PAGE:-yes} ;;
  *) echo "BENCH is quick or full, not $BENCH" >&2; exit 2 ;;
esac

echo "building the product and the bench ..."
mkdir -p bin/bench
go build -o bin/bench/linekeeper ./cmd/linekeeper
go build -o bin/bench/bench ./test/bench

file=docs/benchmarks.md
case " $*" in
  *" -only scale"*) file=docs/scaling.md ;;
  *" -only "*) page=no ;;
esac
write=()
if [ "$page" = yes ]; then write=(-page $file); fi
exec bin/bench/bench -plan "$BENCH" -binary bin/bench/linekeeper -dir bin/bench ${write[@]+"${write[@]}"} "$@"

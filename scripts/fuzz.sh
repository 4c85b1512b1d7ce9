#!/usr/bin/env bash
# Feeds every parser what a fuzzer makes, FUZZTIME (60s) each: all targets that
# there are, or those that match the first argument. What fails is kept in
# testdata/fuzz of the package, and is a test from then on.
set -euo pipefail
cd "$(dirname "$0")/.."
export GOFLAGS="${GOFLAGS:-} -buildvcs=false"

time=${FUZZTIME:-60s}
wanted=${1:-.}
count=0
failed=()

# Only packages that have a target are built: listing the others takes minutes.
for dir in $(grep -rl --include=*_test.go '^func Fuzz' . | xargs -n1 dirname | sort -u); do
  for target in $(go test -list '^Fuzz' "$dir" | grep '^Fuzz' || true); do
    [[ $dir/$target =~ $wanted ]] || continue
    echo "== $dir $target ($time) =="
    count=$((count + 1))
    go test "$dir" -run '^$' -fuzz "^$target\$" -fuzztime "$time" | grep -v '^PASS$' || failed+=("$dir $target")
  done
done

if [ "$count" = 0 ]; then
  echo "no fuzz target matches $wanted" >&2
  exit 2
fi
if [ ${#failed[@]} -gt 0 ]; then
  printf 'failed: %s\n' "${failed[@]}" >&2
  exit 1
fi
echo "$count parsers fuzzed, $time each, nothing found"

#!/usr/bin/env bash
# Fails if a generated file differs from what `make generate` would write. It
# generates in a copy, so that nothing here is touched.
set -euo pipefail
cd "$(dirname "$0")/.."

copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
tar -cf - --exclude=./.git --exclude=./bin --exclude=./.linekeeper . | tar -xf - -C "$copy"
(cd "$copy" && go generate ./...)
if ! diff -r -x .git -x bin -x .linekeeper . "$copy"; then
  echo "generated files are not current: run make generate" >&2
  exit 1
fi

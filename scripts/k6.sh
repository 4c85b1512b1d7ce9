#!/usr/bin/env bash
# Loads what `make run` or `make up` has started, with the k6 on PATH. Arguments
# go to k6 run. Environment: see test/k6/sale.js.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v k6 >/dev/null; then
  echo "k6 is not on PATH; get it with: go install go.k6.io/k6@latest (into $(go env GOPATH 2>/dev/null || echo '~/go')/bin), or from https://grafana.com/docs/k6/latest/set-up/install-k6/" >&2
  exit 2
fi
export ADMIN_URL=${ADMIN_URL:-http://127.0.0.1:8081}
ADMIN_TOKEN=$(scripts/admin-token.sh)
export ADMIN_TOKEN
exec k6 run "$@" test/k6/sale.js

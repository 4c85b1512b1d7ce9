#!/usr/bin/env bash
# Loads what `make run` or `make up` has started. Arguments go to linekeeper load.
# Environment: ADMIN_URL and ADMIN_TOKEN, as for make k6.
set -euo pipefail
cd "$(dirname "$0")/.."
go build -o bin/linekeeper ./cmd/linekeeper
LINEKEEPER_ADMIN_TOKEN=$(scripts/admin-token.sh)
LINEKEEPER_ADMIN_URL=${ADMIN_URL:-http://127.0.0.1:8081}
export LINEKEEPER_ADMIN_TOKEN LINEKEEPER_ADMIN_URL
exec bin/linekeeper load "$@"

#!/usr/bin/env bash
# Brings the stack of docker-compose.yml up or down with whichever compose is
# there, and says how to use it.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! docker info >/dev/null 2>&1; then
  echo "no container engine answers; install and start Docker, or use: make run" >&2
  exit 2
fi
if docker compose version >/dev/null 2>&1; then
  compose=(docker compose)
elif command -v docker-compose >/dev/null; then
  compose=(docker-compose)
else
  echo "no compose found: sudo apt-get install -y docker-compose" >&2
  exit 2
fi

public=http://127.0.0.1:${LINEKEEPER_PORT:-8080}
operators=http://127.0.0.1:${LINEKEEPER_ADMIN_PORT:-8081}

case ${1:-} in
  up)
    echo "building the image (the first time takes some minutes) ..."
    export DOCKER_BUILDKIT=1 COMPOSE_DOCKER_CLI_BUILD=1
    "${compose[@]}" build --quiet setup
    echo "starting redis, postgres, two replicas and nginx ..."
    "${compose[@]}" up -d
    for _ in $(seq 1 120); do
      curl -fs -o /dev/null $public/readyz && break
      sleep 0.5
    done
    curl -fsS -o /dev/null $public/readyz || { "${compose[@]}" logs --tail 20 >&2; exit 1; }
    echo
    echo "  public API    $public"
    echo "  operators     $operators/admin/v1"
    echo "  admin token   ${compose[*]} run --rm --no-deps setup admin-token show /secrets"
    ;;
  down) "${compose[@]}" down ;;
  *) echo "usage: $0 up|down" >&2; exit 2 ;;
esac

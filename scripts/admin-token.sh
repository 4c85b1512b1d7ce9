#!/usr/bin/env bash
# Prints the admin token of what `make run` or `make up` has started, or
# ADMIN_TOKEN, whichever the operators' API at ADMIN_URL takes.
set -euo pipefail
cd "$(dirname "$0")/.."
ADMIN_URL=${ADMIN_URL:-http://127.0.0.1:8081}

# accepted says whether the operators' API takes a token. The token goes by a file
# descriptor: a command line can be read by everybody on the machine.
accepted() {
  [ -n "$1" ] && curl -fs -o /dev/null -m 5 -H @<(printf 'Authorization: Bearer %s\n' "$1") "$ADMIN_URL/admin/v1/rooms"
}

given() { echo "${ADMIN_TOKEN:-}"; }

# of_run prints the token of `make run`. Its data are in /var/tmp where the user
# that runs Postgres can't reach this directory; origin says whose they are.
of_run() {
  if [ -r .linekeeper/admin-token ]; then sed 1q .linekeeper/admin-token; fi
  for moved in /var/tmp/linekeeper-*; do
    if [ -r "$moved/admin-token" ] && [ "$(cat "$moved/origin")" = "$PWD/.linekeeper" ]; then
      sed 1q "$moved/admin-token"
    fi
  done
}

# of_containers prints the token of `make up`, if that runs.
of_containers() {
  local compose=(docker-compose)
  if docker compose version >/dev/null 2>&1; then compose=(docker compose); fi
  if [ -n "$("${compose[@]}" ps -q linekeeper-1)" ]; then
    "${compose[@]}" run -T --rm --no-deps setup admin-token show /secrets </dev/null | sed 1q
  fi
}

for source in given of_run of_containers; do
  for token in $($source 2>/dev/null); do
    if accepted "$token"; then
      echo "$token"
      exit
    fi
  done
done
echo "no admin token that $ADMIN_URL accepts; start one of make run, make up, or set ADMIN_URL and ADMIN_TOKEN" >&2
exit 2

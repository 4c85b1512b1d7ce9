#!/usr/bin/env bash
# Removes bin/ and the data of `make run`: .linekeeper/, and the directory in
# /var/tmp that replaces a part of it where Postgres's user can't reach it.
set -euo pipefail
cd "$(dirname "$0")/.."

remove() {
  [ -e "$1" ] || return 0
  echo "removing $1"
  rm -rf "$1"
}

for moved in /var/tmp/linekeeper-*; do
  # origin is the directory that was wanted: another checkout's stays.
  if [ -r "$moved/origin" ] && [[ $(cat "$moved/origin") == "$PWD/.linekeeper"* ]]; then
    remove "$moved"
  fi
done
remove bin
remove .linekeeper

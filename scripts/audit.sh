#!/usr/bin/env bash
# Looks over what the product is made of: that modules are the ones that go.sum
# names, that their licences are allowed, and whether a known vulnerability can be
# reached from our code. GOVULNDB names another database of them.
set -euo pipefail
cd "$(dirname "$0")/.."
export GOFLAGS="${GOFLAGS:-} -buildvcs=false"
db=${GOVULNDB:-https://vuln.go.dev}

echo "== modules"
go mod verify
go mod verify -modfile=tools/go.mod

echo "== licences"
go test -count=1 -v -run 'Licence' ./test | sed -n 's/^ *licences_test.go:[0-9]*: //p; /^\(--- FAIL\|FAIL\|ok\)/p' | sort

echo "== known vulnerabilities"
if [[ $db != file:* ]] && ! curl -fsS -o /dev/null -m 20 "$db/index/db.json"; then
  echo "$db can't be reached: nothing is known about vulnerabilities" >&2
  exit 0
fi
go tool -modfile=tools/go.mod govulncheck -db "$db" ./...

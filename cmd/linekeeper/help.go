package main

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
)

// examples has one line to copy for every command: help that shows is read
// before help that explains. A test parses each, so that none rots.
var examples = map[string]string{
	"serve":            "LINEKEEPER_REDIS_URL=redis://127.0.0.1:6379 LINEKEEPER_DATABASE_URL=postgres://me@127.0.0.1/shop LINEKEEPER_KEYS_FILE=keys linekeeper serve",
	"dev":              "linekeeper dev --crowd 100",
	"migrate up":       "LINEKEEPER_DATABASE_URL=postgres://me@127.0.0.1/shop linekeeper migrate up",
	"migrate down":     "LINEKEEPER_DATABASE_URL=postgres://me@127.0.0.1/shop linekeeper migrate down",
	"migrate status":   "LINEKEEPER_DATABASE_URL=postgres://me@127.0.0.1/shop linekeeper migrate status -o json",
	"setup":            "LINEKEEPER_DATABASE_URL=postgres://me@127.0.0.1/shop linekeeper setup --secrets /secrets",
	"keys new":         "linekeeper keys new > keys",
	"keys rotate":      "linekeeper keys rotate add keys",
	"keys list":        "LINEKEEPER_KEYS_FILE=keys linekeeper keys list",
	"admin-token new":  "linekeeper admin-token new --role operator ann",
	"admin-token show": "linekeeper admin-token show .linekeeper",
	"room list":        "linekeeper room list -o json",
	"room create":      `linekeeper room create tickets batchSize=100 opensAt=2026-11-27T12:00:00Z`,
	"room get":         "linekeeper room get tickets",
	"room set":         `linekeeper room set tickets batchSize=100 message.en="Back in ten minutes" --if-version 3`,
	"room pause":       "linekeeper room pause tickets",
	"room resume":      "linekeeper room resume tickets",
	"room drain":       "linekeeper room drain tickets",
	"room off":         "linekeeper room off tickets",
	"room release":     "linekeeper room release tickets --count 50",
	"room flush":       "linekeeper room flush tickets --confirm tickets",
	"room delete":      "linekeeper room delete tickets --confirm tickets",
	"room stats":       "linekeeper room stats tickets -o json",
	"room apply":       "linekeeper room apply -f rooms.yaml --dry-run",
	"member get":       "linekeeper member get tickets ann",
	"member evict":     "linekeeper member evict tickets ann --confirm tickets",
	"member block":     "linekeeper member block tickets ann --confirm tickets",
	"member unblock":   "linekeeper member unblock tickets ann",
	"code create":      "linekeeper code create --room tickets --lane vip --uses 1 --count 500 > codes.csv",
	"code list":        "linekeeper code list --room tickets",
	"code revoke":      "linekeeper code revoke --room tickets --batch 3",
	"product get":      "linekeeper product get demo",
	"product set":      "linekeeper product set demo stock=1000 priceCents=1990 currency=EUR",
	"outbox list":      "linekeeper outbox list --status pending",
	"outbox requeue":   "linekeeper outbox requeue 17",
	"audit":            "linekeeper audit --target tickets",
	"token inspect":    "linekeeper token inspect < token",
	"token verify":     "LINEKEEPER_KEYS_FILE=keys linekeeper token verify < token",
	"draw verify":      "linekeeper draw verify entrants.jsonl --member ann --commitment 6c86c6aac5fb24bcf5d9939cb7d7d5645ce39418f449e03b262dd4fa14b4b92b",
	"simulate":         "linekeeper simulate burst --lane vip=5,wait=5m --lane standard=45,wait=20m --solve",
	"load":             "linekeeper load burst --arrivals 10000 --over 10s --html report.html",
	"config print":     "linekeeper config print -o json",
	"config check":     "linekeeper config check --config linekeeper.yaml",
	"config docs":      "linekeeper config docs",
	"doctor":           "linekeeper doctor --room tickets",
	"healthcheck":      "linekeeper healthcheck --listen :8080",
	"completion bash":  "linekeeper completion bash > /etc/bash_completion.d/linekeeper",
	"completion zsh":   `linekeeper completion zsh > "${fpath[1]}/_linekeeper"`,
	"completion fish":  "linekeeper completion fish > ~/.config/fish/completions/linekeeper.fish",
	"version":          "linekeeper version",
}

// more is what the help of a command has to say beside its one line.
var more = map[string]string{
	"room set":     "Settings are those of `linekeeper config docs`. An empty value or null gives the default back; message.LANGUAGE= takes a text away.",
	"room apply":   "The file has `rooms:`, and below it names with settings. A setting that is not named stays as it is. What is not named is not touched.",
	"room off":     "Rate, capacity and times count for nothing: everybody passes, with a real token; in a draw once its list is kept. `linekeeper room resume` ends it.",
	"room release": "Beyond the rate, never beyond capacity or stock; also while the room is paused. Running it twice releases twice: say --if-version to be safe.",
	"member get":   "Looking is not hearing: somebody who is away stays away. -o json has every field.",
	"member evict": "Refused while an order of theirs is running; run it again once that has ended. It ends with the sale, or with `linekeeper member unblock`.",
	"member block": "An order that is running goes on, and there will be no other. It holds over flushes, and until `linekeeper member unblock`.",
	"doctor":       "Each line is ok, warn, FAIL or skip, and has the one thing to do. The exit code is 1 if any check fails. Run it where the processes run, with their settings.",
	"draw verify":  "Each line is ok, warn or FAIL. The exit code is 1 if any check fails, 2 if there is nothing to check.",
	"simulate":     "The controller and the rate are the product's own, people and database are modelled; an hour takes a second or two. The database does --connections orders at once, --service each when idle, and bears as many as leave the mean order at half a second. Of the result, load is how far beyond that the room went, batch whether it swung to and fro, use how much was made of it. With --solve the exit code is 3 when no batch and no weights will do. docs/policies.md has the formulas.",
	"load":         "People come when they are due, however slow the answers are, and ask again when they are told. Latencies are shown from when a call was due, and from when it was sent. With LINEKEEPER_ADMIN_TOKEN_FILE (beside `linekeeper dev`: .linekeeper/admin-token) the rate is judged as well. The exit code is 1 if a promise was broken or nobody got in, 3 if the server can't be reached. Orders are real: load a room that may be played with. docs/load.md says how to read the report.",
	"config":       "A value is taken from the first that has it: flag, LINEKEEPER_X, the file named by LINEKEEPER_X_FILE, YAML file, default.",
}

// withExamples puts both into the help of the commands.
func withExamples(k *kong.Kong) error {
	return kong.Visit(k.Model, func(node kong.Visitable, next kong.Next) error {
		if n, ok := node.(*kong.Node); ok && n.Type == kong.CommandNode {
			path := commandPath(n)
			var parts []string
			if text := more[path]; text != "" {
				parts = append(parts, text)
			}
			if line := examples[path]; line != "" {
				parts = append(parts, fmt.Sprintf("Example:\n  %s", line))
			}
			n.Detail = strings.Join(parts, "\n\n")
		}
		return next(nil)
	})
}

// commandPath is what one types to get to a command.
func commandPath(n *kong.Node) string {
	var words []string
	for ; n != nil && n.Type == kong.CommandNode; n = n.Parent {
		words = append([]string{n.Name}, words...)
	}
	return strings.Join(words, " ")
}

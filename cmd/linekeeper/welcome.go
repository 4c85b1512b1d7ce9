package main

import (
	"net"
	"strings"
	"text/template"
)

// The block works when it is pasted as a whole, in any POSIX shell.
var welcome = template.Must(template.New("").Parse(`
Linekeeper is running. Ctrl-C stops it and all that it has started.

  public API    {{.Public}}           spec: {{.Public}}/openapi.yaml
  operators     {{.Admin}}/admin/v1   metrics: {{.Admin}}/metrics
  admin token   {{.Token}}

Place an order through the line; paste the whole block:

{{.Block}}
`))

var block = template.Must(template.New("").Parse(`API={{.Public}} ADMIN={{.Admin}} ADMIN_TOKEN={{.Token}}

# Enter: 201, status WAITING, rank 0 if nobody else waits, and a queueTicket.
ENTERED=$(curl -s -X POST "$API/v1/rooms/default/entries"); echo "$ENTERED"
TICKET=$(echo "$ENTERED" | sed -n 's/.*"queueTicket":"\([^"]*\)".*/\1/p')

# Poll: 200, status READY, and an entryToken.
sleep 2
POSITION=$(curl -s -H "X-Queue-Ticket: $TICKET" "$API/v1/rooms/default/entries/me"); echo "$POSITION"
TOKEN=$(echo "$POSITION" | sed -n 's/.*"entryToken":"\([^"]*\)".*/\1/p')

# Order: 201, and the order; again, 6 seconds later: 200, and the same order.
curl -s -X POST -H "X-Entry-Token: $TOKEN" -H 'Content-Type: application/json' \
  -d '{"items":[{"sku":"demo","quantity":1}]}' "$API/v1/orders"; echo

# Let twice as many through: 200, and the settings with "batchSize":100.
curl -s -X PATCH -H "Authorization: Bearer $ADMIN_TOKEN" -H 'If-Match: *' -H 'Content-Type: application/merge-patch+json' \
  -d '{"batchSize":100}' "$ADMIN/admin/v1/rooms/default"; echo
`))

func (d *dev) welcome(public, operators net.Addr) {
	where := struct{ Public, Admin, Token, Block string }{Public: "http://" + reach(public), Admin: "http://" + reach(operators), Token: d.token}
	var b strings.Builder
	if err := block.Execute(&b, where); err == nil {
		where.Block = strings.TrimSpace(b.String())
	}
	_ = welcome.Execute(d.std.out, where)
}

// reach is an address that a client on this machine can use.
func reach(a net.Addr) string {
	host, port, _ := net.SplitHostPort(a.String())
	if ip := net.ParseIP(host); ip == nil || ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}

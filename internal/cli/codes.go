package cli

import (
	"context"
	"io"
	"net/http"

	"github.com/linekeeper/linekeeper/room"
)

// MakeCodes makes access codes. The answer is the only place where they are.
func (c *Client) MakeCodes(ctx context.Context, name string, want room.NewCodes) (View, error) {
	body := map[string]any{"uses": want.Uses, "count": want.Count}
	if want.Lane != "" {
		body["lane"] = want.Lane
	}
	return c.view(ctx, request{method: http.MethodPost, path: roomPath(name, "codes"), body: body}, newCodeRows)
}

// Codes lists the access codes of a room, lowest id first, by their endings.
func (c *Client) Codes(ctx context.Context, name string, p Page) (View, error) {
	return c.view(ctx, request{method: http.MethodGet, path: roomPath(name, "codes") + p.query("", "after")}, codeRows)
}

// RevokeCodes makes one code, or those made together, count no more.
func (c *Client) RevokeCodes(ctx context.Context, name string, which room.Revocation) (View, error) {
	return c.view(ctx, request{method: http.MethodPost, path: roomPath(name, "codes", "revoke"), body: which}, revokedRows)
}

// newCodeRows is one code a line and nothing else, so that it is a file to send
// on, and CSV as well.
var newCodeRows = table(func(w io.Writer, v struct {
	Codes []string `json:"codes"`
}) {
	for _, code := range v.Codes {
		line(w, code)
	}
})

var codeRows = table(func(w io.Writer, v struct {
	Codes []room.Code `json:"codes"`
	Next  *int64      `json:"next"`
}) {
	line(w, "ID", "BATCH", "ENDS IN", "LANE", "USES", "USED", "MADE", "REVOKED")
	for _, c := range v.Codes {
		lane := "-"
		if c.Lane != nil {
			lane = *c.Lane
		}
		line(w, c.ID, c.Batch, c.Ending, lane, c.Uses, c.Used, at(&c.MadeAt), at(c.RevokedAt))
	}
	more(w, "--after", v.Next)
})

var revokedRows = table(func(w io.Writer, v struct {
	Revoked int64 `json:"revoked"`
}) {
	line(w, "codes that count no more:", v.Revoked)
})

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/linekeeper/linekeeper/room"
)

// productFields are what can be said of a product.
var productFields = []string{"stock", "priceCents", "currency"}

// ParseProduct reads field=value for a product. stock must be among them: what
// is put counts from then on, and a stock that was only read would undo the
// orders placed meanwhile. The error is room.Problems.
func ParseProduct(args []string) (map[string]json.RawMessage, error) {
	doc := map[string]json.RawMessage{}
	var wrong room.Problems
	for _, arg := range args {
		name, text, found := strings.Cut(arg, "=")
		switch {
		case !found:
			wrong = append(wrong, room.Problem{Field: plain(arg), Detail: "must be written as field=value"})
		case doc[name] != nil:
			wrong = append(wrong, room.Problem{Field: plain(name), Detail: "is there twice"})
		default:
			doc[name], _ = json.Marshal(text)
			if name != "currency" && json.Valid([]byte(text)) {
				doc[name] = json.RawMessage(text)
			}
		}
	}
	if doc["stock"] == nil {
		wrong = append(wrong, room.Problem{Field: "stock", Detail: "must be given: it counts from now on, and orders take from it all the time"})
	}
	return doc, productProblems(doc, wrong)
}

// productProblems judges what is there; what is missing may come from the
// product as it is.
func productProblems(doc map[string]json.RawMessage, wrong room.Problems) error {
	text, err := json.Marshal(doc)
	if err != nil {
		return err
	}
	_, err = room.ParseProduct("x", text)
	var problems room.Problems
	if err != nil && !errors.As(err, &problems) {
		return err
	}
	for _, p := range problems {
		if doc[p.Field] != nil || !slices.Contains(productFields, p.Field) {
			wrong = append(wrong, p)
		}
	}
	if len(wrong) > 0 {
		return wrong
	}
	return nil
}

// PutProduct makes the product, or changes it. Of an existing one it keeps the
// price and the currency that fields does not name. version is that which the
// caller has seen; 0 changes whatever is there.
func (c *Client) PutProduct(ctx context.Context, sku string, version int64, fields map[string]json.RawMessage) (View, error) {
	path := "/products/" + url.PathEscape(sku)
	if len(fields) < len(productFields) {
		got, err := c.do(ctx, request{method: http.MethodGet, path: path})
		var no Refusal
		if errors.As(err, &no) && no.Code == "product-not-found" {
			return View{}, errors.New("there is no product " + sku + " yet: give priceCents and currency too")
		}
		if err != nil {
			return View{}, err
		}
		if version == 0 {
			version = got.version // what was read must still be so
		}
		if fields, err = completed(fields, got.body); err != nil {
			return View{}, err
		}
	}
	return c.view(ctx, request{method: http.MethodPut, path: path, body: fields, version: version}, productRows)
}

// completed adds what fields does not name from the product as it is.
func completed(fields map[string]json.RawMessage, product []byte) (map[string]json.RawMessage, error) {
	var there map[string]json.RawMessage
	if err := json.Unmarshal(product, &there); err != nil {
		return nil, err
	}
	all := map[string]json.RawMessage{}
	for _, name := range productFields {
		all[name] = there[name]
		if v, given := fields[name]; given {
			all[name] = v
		}
	}
	return all, nil
}

package history

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"syscall"
)

// Class says how a call ended that changes something: by the status of its
// answer and the code of its problem (empty: the body was none of ours), or by
// the error that came instead of an answer.
//
// OK is an answer that says what was done. Fail is a definite refusal: nothing
// was done and never will be. All else is Unknown, because being wrong about
// that hides nothing, while an Unknown taken for a Fail accuses the innocent:
//
//   - No answer (EOF, reset, timeout): the request may have been handled.
//     Only where no connection came about was nothing sent.
//   - 4xx: the request was refused before, or instead of, its effect.
//   - 503 "unavailable": a script whose answer was lost in Redis is told to the
//     client so, and has had its effect. For an order this is a Fail, see
//     ClassOf.
//   - Any other 5xx: from whoever stands between, or from a panic.
func Class(status int, code string, err error) Type {
	switch {
	case err != nil && notSent(err):
		return Fail
	case err != nil || status == 0:
		return Unknown
	case status < 400:
		return OK
	case status < 500:
		return Fail
	}
	// These are words of the server about a step that it refused to take. They
	// reach only those who call it directly, and not over HTTP.
	for _, word := range []string{"READONLY", "OOM", "STALE", "GEN", "MISCONF", "NOREPLICAS", "LOADING", "CROSSSLOT"} {
		if strings.HasPrefix(code, word) {
			return Fail
		}
	}
	return Unknown
}

// ClassOf is Class for one kind of call.
//
// Of the errors of an order, only order-outcome-unknown leaves open whether
// there is an order: that is promised (I4), so a 503 "unavailable" is held
// against the product if an order comes of it after all. "internal" is not: it
// is what a panic looks like, and a panic keeps its claim.
//
// A poll changes nothing that its member did not ask for: an answer that did
// not come leaves nothing open.
func ClassOf(f F, status int, code string, err error) Type {
	t := Class(status, code, err)
	switch {
	case f == Order && t == Unknown && err == nil && code == "unavailable":
		return Fail
	case f == Poll && t == Unknown && err == nil && code != "":
		return Fail
	}
	return t
}

// notSent tells errors of dialling: no connection, so no request.
func notSent(err error) bool {
	if errors.Is(err, syscall.ECONNREFUSED) {
		return true
	}
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// Content writes what an order asks for in one way: each SKU once, in order.
func Content(items []Item) string {
	sum := map[string]int64{}
	for _, it := range items {
		sum[it.SKU] += it.Quantity
	}
	merged := make([]Item, 0, len(sum))
	for sku, n := range sum {
		merged = append(merged, Item{sku, n})
	}
	slices.SortFunc(merged, func(a, b Item) int { return cmp.Compare(a.SKU, b.SKU) })
	parts := make([]string, len(merged))
	for i, it := range merged {
		parts[i] = fmt.Sprintf("%dx%s", it.Quantity, it.SKU)
	}
	return strings.Join(parts, ",")
}

package order

import (
	"errors"
	"fmt"
	"time"

	"github.com/linekeeper/linekeeper/queue"
)

// Errors a caller is expected to act on. Match them with errors.Is; those that
// carry data have a type beside them for errors.As.
var (
	// ErrInvalidItems means that the items are refused as they are; see
	// InvalidItemsError.
	ErrInvalidItems = errors.New("order: invalid items")
	// ErrUnknownProduct means that an item is not sold; see UnknownProductError.
	ErrUnknownProduct = errors.New("order: unknown product")
	// ErrMixedCurrency means that the items are priced in different currencies,
	// so that there is no total.
	ErrMixedCurrency = errors.New("order: the items have different currencies")
	// ErrSoldOut means that there is less stock than asked for; see SoldOutError.
	ErrSoldOut = errors.New("order: sold out")
	// ErrAlreadyOrdered means that the member has an order in this sale and the
	// room allows one.
	ErrAlreadyOrdered = errors.New("order: the member has ordered already")
	// ErrInProgress means that another attempt with this grant is not decided
	// yet; see InProgressError.
	ErrInProgress = errors.New("order: another attempt is in progress")
	// ErrTokenSpent means that the grant has paid for an order of other content.
	ErrTokenSpent = errors.New("order: the entry token is spent")
	// ErrTokenInvalid means that the grant pays for nothing: there is no order
	// for it and never will be.
	ErrTokenInvalid = errors.New("order: the entry token is not valid any more")
	// ErrIdempotencyMismatch means that the Idempotency-Key belongs to an order
	// of other content.
	ErrIdempotencyMismatch = errors.New("order: the idempotency key belongs to another order")
	// ErrOutcomeUnknown means that the order may or may not be there. The same
	// request, sent again, finds out.
	ErrOutcomeUnknown = errors.New("order: the outcome is unknown")
	// ErrUnavailable means that orders can't be kept or read at the moment.
	// Nothing was written.
	ErrUnavailable = errors.New("order: the store is unavailable")
	// ErrLapsed means that a grant for which no claim was asked can't be used: its
	// time is over, or its member or room is out. It is a Store's word to a Service.
	ErrLapsed = errors.New("order: the grant has lapsed")
	// ErrNotFound means that there is no such order.
	ErrNotFound = errors.New("order: not found")
)

// InvalidItemsError is ErrInvalidItems with the item that is at fault.
type InvalidItemsError struct {
	Index  int    // of the item as it was sent, from 0; -1 if it is their number
	SKU    string // of that item
	Reason string // fit to be shown to the client
}

// Error names the item and what is wrong with it.
func (e InvalidItemsError) Error() string {
	if e.Index < 0 {
		return fmt.Sprintf("%v: %s", ErrInvalidItems, e.Reason)
	}
	return fmt.Sprintf("%v: items[%d] (sku %q): %s", ErrInvalidItems, e.Index, e.SKU, e.Reason)
}

// Is makes errors.Is(err, ErrInvalidItems) hold.
func (e InvalidItemsError) Is(target error) bool { return target == ErrInvalidItems }

// UnknownProductError is ErrUnknownProduct with the product asked for.
type UnknownProductError struct{ SKU string }

// Error names the product.
func (e UnknownProductError) Error() string { return fmt.Sprintf("%v %q", ErrUnknownProduct, e.SKU) }

// Is makes errors.Is(err, ErrUnknownProduct) hold.
func (e UnknownProductError) Is(target error) bool { return target == ErrUnknownProduct }

// SoldOutError is ErrSoldOut with the product that is short.
type SoldOutError struct{ SKU string }

// Error names the product.
func (e SoldOutError) Error() string { return fmt.Sprintf("%v: %q", ErrSoldOut, e.SKU) }

// Is makes errors.Is(err, ErrSoldOut) hold.
func (e SoldOutError) Is(target error) bool { return target == ErrSoldOut }

// InProgressError is ErrInProgress with the time after which asking again may
// find it decided.
type InProgressError struct{ RetryAfter time.Duration }

// Error names the time to wait.
func (e InProgressError) Error() string { return fmt.Sprintf("%v for %v", ErrInProgress, e.RetryAfter) }

// Is makes errors.Is(err, ErrInProgress) hold.
func (e InProgressError) Is(target error) bool { return target == ErrInProgress }

// Result is how an attempt ended, in the one word that metrics use.
type Result string

// The results. Each ends one call of Place.
const (
	ResultPlaced         Result = "placed"
	ResultReplayed       Result = "replayed"
	ResultInvalid        Result = "invalid"
	ResultUnknownProduct Result = "unknown_product"
	ResultMixedCurrency  Result = "mixed_currency"
	ResultSoldOut        Result = "sold_out"
	ResultAlreadyOrdered Result = "already_ordered"
	ResultInProgress     Result = "in_progress"
	ResultTokenSpent     Result = "token_spent"
	ResultTokenInvalid   Result = "token_invalid"
	ResultMismatch       Result = "idempotency_mismatch"
	ResultLimit          Result = "limit"
	ResultOutcomeUnknown Result = "outcome_unknown"
	ResultUnavailable    Result = "unavailable"
	ResultFailed         Result = "failed" // none of the above: somebody should look
)

// resultOf sorts an error. An unknown outcome comes first, because it may wrap
// an error that would be definite anywhere else than at COMMIT.
func resultOf(err error) Result {
	for _, r := range []struct {
		err    error
		result Result
	}{
		{ErrOutcomeUnknown, ResultOutcomeUnknown},
		{ErrInvalidItems, ResultInvalid},
		{ErrUnknownProduct, ResultUnknownProduct},
		{ErrMixedCurrency, ResultMixedCurrency},
		{ErrSoldOut, ResultSoldOut},
		{ErrAlreadyOrdered, ResultAlreadyOrdered},
		{ErrInProgress, ResultInProgress},
		{ErrTokenSpent, ResultTokenSpent},
		{ErrTokenInvalid, ResultTokenInvalid},
		{ErrIdempotencyMismatch, ResultMismatch},
		{queue.ErrLimit, ResultLimit},
		{ErrUnavailable, ResultUnavailable},
		{queue.ErrUnavailable, ResultUnavailable},
	} {
		if errors.Is(err, r.err) {
			return r.result
		}
	}
	return ResultFailed
}

// OurFault tells whether an attempt that ended with err was not placed although
// nothing is wrong with it: the outcome is unknown, the database or the line could
// not be reached or refused, or something failed that nobody has foreseen. It is
// what shows that the database is overloaded.
func OurFault(err error) bool {
	if err == nil {
		return false
	}
	switch resultOf(err) {
	case ResultOutcomeUnknown, ResultUnavailable, ResultFailed:
		return true
	}
	return false
}

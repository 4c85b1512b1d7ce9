package pgstore

import (
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/linekeeper/linekeeper/order"
)

// holdTerms asks, as the first statement of the order's transaction, what a claim
// would have seen to: that the grant has not ended, that the room still is what it
// was, and that no operator keeps the member out. That an order is there already, or
// a void row, the unique index says.
const holdTerms = `
SELECT statement_timestamp() < $1
   AND EXISTS (SELECT FROM rooms WHERE name = $2 AND sale = $3::bigint AND deleted_at IS NULL AND $4::bigint IN (0, generation))
   AND NOT EXISTS (SELECT FROM room_exclusions WHERE room = $2 AND member = $5 AND sale IN (0, $3::bigint))`

// queueTerms puts the question into the batch, where there are terms.
func queueTerms(batch *pgx.Batch, o order.Order) {
	if o.Terms != nil {
		batch.Queue(holdTerms, o.Terms.Expiry, o.Room, o.Sale, o.Terms.Generation, o.Member)
	}
}

// termsHold reads the answer; order.ErrLapsed where they do not.
func termsHold(results pgx.BatchResults, o order.Order) error {
	if o.Terms == nil {
		return nil
	}
	var hold bool
	if err := results.QueryRow().Scan(&hold); err != nil {
		return fmt.Errorf("look at the terms of grant %s: %w", o.Grant, err)
	}
	if !hold {
		return order.ErrLapsed
	}
	return nil
}

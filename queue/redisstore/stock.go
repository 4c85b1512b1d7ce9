package redisstore

import "github.com/linekeeper/linekeeper/queue"

// stockArgs are the last arguments of reserve, empty where there is nothing to
// tell.
func stockArgs(reading *queue.StockReading) []any {
	if reading == nil {
		return []any{"", "", ""}
	}
	return []any{reading.SKU, reading.Left, reading.Consumed}
}

// stockOf is the last reading, if it is of the product that bounds the room now.
func stockOf(conf, state hash) queue.StockSnapshot {
	if conf["stock"] == "" || state["stock_sku"] != conf["stock"] {
		return queue.StockSnapshot{}
	}
	return queue.StockSnapshot{Left: state.int("stock"), Told: state.time("stock_at")}
}

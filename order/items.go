package order

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
)

// What an order may ask for.
const (
	MaxItems    = 50   // different SKUs
	MaxQuantity = 1000 // of one SKU, after its repetitions are added up
	maxSKU      = 64   // characters
)

// Fingerprint tells orders of different content apart: SHA-256 over the room
// and the items, sorted and merged.
type Fingerprint [sha256.Size]byte

// normalise checks items and returns them in the order of their SKUs, each SKU
// once. That order is also the one in which stock is locked: two orders that
// name the same products in opposite order never wait for each other.
func normalise(items []Item) ([]Item, error) {
	if len(items) == 0 {
		return nil, InvalidItemsError{Index: -1, Reason: "an order needs at least one item"}
	}
	sum := make(map[string]int, len(items))
	for i, it := range items {
		if reason := fault(it, sum[it.SKU]); reason != "" {
			return nil, InvalidItemsError{Index: i, SKU: it.SKU, Reason: reason}
		}
		sum[it.SKU] += it.Quantity
	}
	if len(sum) > MaxItems {
		return nil, InvalidItemsError{Index: -1, Reason: fmt.Sprintf("%d different skus, at most %d are allowed", len(sum), MaxItems)}
	}
	merged := make([]Item, 0, len(sum))
	for sku, n := range sum {
		merged = append(merged, Item{SKU: sku, Quantity: n})
	}
	slices.SortFunc(merged, func(a, b Item) int { return cmp.Compare(a.SKU, b.SKU) })
	return merged, nil
}

// fault says what is wrong with it, if before of its SKU are asked for already.
func fault(it Item, before int) string {
	switch {
	case !validSKU(it.SKU):
		return "a sku is 1 to 64 letters, digits, '.', '_' or '-', and begins with a letter or digit"
	case it.Quantity < 1 || it.Quantity > MaxQuantity:
		return fmt.Sprintf("quantity %d is not between 1 and %d", it.Quantity, MaxQuantity)
	case before+it.Quantity > MaxQuantity:
		return fmt.Sprintf("quantity %d in all is more than %d", before+it.Quantity, MaxQuantity)
	}
	return ""
}

// validSKU is ^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$, as the schema has it.
func validSKU(sku string) bool {
	if sku == "" || len(sku) > maxSKU {
		return false
	}
	for i, c := range []byte(sku) {
		alnum := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !alnum && (i == 0 || c != '.' && c != '_' && c != '-') {
			return false
		}
	}
	return true
}

// fingerprint hashes normalised items. Every text is preceded by its length, so
// that no two contents share an encoding. It is stored: changing the encoding
// turns retries that are on their way into 409s.
func fingerprint(room string, items []Item) Fingerprint {
	b := binary.AppendUvarint(nil, uint64(len(room)))
	b = append(b, room...)
	for _, it := range items {
		b = binary.AppendUvarint(b, uint64(len(it.SKU)))
		b = append(b, it.SKU...)
		b = binary.AppendUvarint(b, uint64(it.Quantity))
	}
	return sha256.Sum256(b)
}

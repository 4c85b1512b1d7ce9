package room

import (
	"regexp"
	"time"
)

const (
	maxProductStock = 1_000_000_000
	maxPriceCents   = 100_000_000_000 // times the largest order it is still far from overflow
)

var (
	skuForm      = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	currencyForm = regexp.MustCompile(`^[A-Z]{3}$`)
)

// ValidSKU tells whether a product can have this name.
func ValidSKU(sku string) bool { return skuForm.MatchString(sku) }

// Product is one thing that orders can be about.
type Product struct {
	SKU        string    `json:"sku"`
	Stock      int64     `json:"stock"` // what is left to sell
	PriceCents int64     `json:"priceCents"`
	Currency   string    `json:"currency"` // three letters, ISO 4217
	Version    int64     `json:"version"`
	UpdatedAt  time.Time `json:"updatedAt"`
}

// ParseProduct reads what an operator says of a product: stock, priceCents and
// currency, all of them. The error is ErrJSON or Problems.
func ParseProduct(sku string, json []byte) (Product, error) {
	doc, err := DecodeObject(json)
	if err != nil {
		return Product{}, err
	}
	p := Product{SKU: sku}
	var wrong Problems
	number := func(field string, high int) int64 {
		n, ok := wholeNumber(doc[field])
		if !ok || n < 0 || n > high {
			wrong = append(wrong, notWhole(0, high, doc[field]).under(field)...)
		}
		return int64(n)
	}
	p.Stock = number("stock", maxProductStock)
	p.PriceCents = number("priceCents", maxPriceCents)
	if p.Currency, _ = doc["currency"].(string); !currencyForm.MatchString(p.Currency) {
		wrong = append(wrong, problem("must be three capital letters such as EUR, got %s", got(doc["currency"])).under("currency")...)
	}
	wrong = append(wrong, unknown(doc, "property of a product", "stock", "priceCents", "currency")...)
	return p, wrong.err()
}

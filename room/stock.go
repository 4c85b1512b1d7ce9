package room

import (
	"encoding/json"
	"math"
	"regexp"
	"strconv"
)

// maxOverbook is far above what any share of no-shows asks for, which is one
// divided by the share of those who come.
const maxOverbook = 10

// overbookForm is a number from 1 to 10 as people write one. What it means is
// exact: the scripts count in thousandths.
var overbookForm = regexp.MustCompile(`^([1-9]|10)(\.[0-9]{1,3})?$`)

func readStock(v any, _ *string) (*string, Problems) {
	sku, ok := v.(string)
	if !ok {
		return nil, notSKU(v)
	}
	return &sku, checkStock(&sku)
}

func checkStock(sku *string) Problems {
	if sku != nil && !ValidSKU(*sku) {
		return notSKU(*sku)
	}
	return nil
}

func notSKU(v any) Problems { return problem("must be null or a product's sku, got %s", got(v)) }

func readOverbook(v any, _ float64) (float64, Problems) {
	n, ok := v.(json.Number)
	if !ok || !overbookForm.MatchString(n.String()) {
		return 0, notOverbook(v)
	}
	x, err := strconv.ParseFloat(n.String(), 64)
	if err != nil {
		return 0, notOverbook(v)
	}
	return x, checkOverbook(x)
}

func checkOverbook(x float64) Problems {
	if !(x >= 1 && x <= maxOverbook) || float64(thousandths(x))/1000 != x {
		return notOverbook(x)
	}
	return nil
}

func notOverbook(v any) Problems {
	return problem("must be a number from 1 to %d with at most 3 decimals, got %s", maxOverbook, got(v))
}

// overbooksNothing complains about a factor that there is no stock for: an
// operator who sets it expects it to do something.
func (s Settings) overbooksNothing() Problems {
	if s.Stock != nil || s.Overbook == 1 {
		return nil
	}
	return problem("must be 1 where stock is null, got %s", got(s.Overbook)).under("overbook")
}

func thousandths(x float64) int { return int(math.Round(x * 1000)) }

// bound is the product that bounds who is let in, and by how many thousandths
// of its stock; neither where none does.
func (s Settings) bound() (sku string, overbook int) {
	if s.Stock == nil {
		return "", 0
	}
	return *s.Stock, thousandths(s.Overbook)
}

// NoSuchProduct is what is wrong with settings whose stock names no product: a
// room with nothing that it could ever sell.
func NoSuchProduct(sku string) Problems {
	return problem("must be null or the sku of a product that exists, got %s", got(sku)).under("stock")
}

package admin

import (
	"errors"
	"net/http"

	"github.com/linekeeper/linekeeper/api/problem"
	"github.com/linekeeper/linekeeper/room"
)

func (s *server) getProduct(w http.ResponseWriter, r *http.Request) error {
	sku := r.PathValue("sku")
	if !room.ValidSKU(sku) {
		return refusal{problem.New("product-not-found")}
	}
	p, err := s.Store.Product(r.Context(), sku)
	if errors.Is(err, room.ErrNotFound) {
		return refusal{problem.New("product-not-found")}
	}
	if err != nil {
		return err
	}
	return writeVersioned(w, http.StatusOK, p.Version, p)
}

// putProduct does not ask for If-Match, because putting a product is also how
// one is made; where it is given it must hold.
func (s *server) putProduct(w http.ResponseWriter, r *http.Request) error {
	sku := r.PathValue("sku")
	if !room.ValidSKU(sku) {
		return refusal{problem.New("bad-request").WithDetail(
			"A SKU is 1 to 64 letters, digits, dots, dashes or underscores, and begins with a letter or digit.")}
	}
	body, err := readBody(w, r, jsonType)
	if err != nil {
		return err
	}
	p, err := room.ParseProduct(sku, body)
	if err != nil {
		return err
	}
	version, _ := ifMatch(r)
	put, created, err := s.Store.PutProduct(r.Context(), p, version, actor(r, "product.put"))
	if errors.Is(err, room.ErrNotFound) {
		return refusal{problem.New("product-not-found")}
	}
	if err != nil {
		return err
	}
	if created {
		return writeVersioned(w, http.StatusCreated, put.Version, put)
	}
	return writeVersioned(w, http.StatusOK, put.Version, put)
}

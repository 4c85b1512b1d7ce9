// Package catalog lists the failpoints and mutants that test/fault/overlay puts
// into copies of the product: what each is for, and what must notice it.
package catalog

// Point is a failpoint: a place in the product where a process can be made to
// die, to stop or to lag.
type Point struct {
	// Name begins with the kind of step and the number of what can go wrong there
	// (E enter, P poll, T tick, O order, X outbox, W upkeep, L leading, R the
	// generations of a room, H answers and processes); a word for the place follows.
	Name    string
	Meaning string // what has happened by then, and what has not
	File    string // of the product
}

// Mutant is one way in which the product could be wrong.
type Mutant struct {
	Name   string
	Breaks string // what it does instead
	Caught string // the promise that it breaks, by which a checker must catch it
	Needs  string // what has to happen for that, beside ordinary traffic; may be empty
}

// Package rate measures what the scheduler promises of numbers: that a high rate
// is kept and filled by several of them, that those who have vanished hold up
// nobody, that a thousand rooms tick in time, and that a room that nobody uses
// costs next to nothing. Each test prints its figure in a line that begins with
// "rate:".
//
// The tests are built with the tag faults and run by `make verify`, on the
// product as it is: without the overlay, whose journal would be part of what is
// measured. FAULTS=long measures for a minute where a quick run takes seconds.
// Whoever wants to compare figures keeps the machine otherwise idle; the bounds
// hold on a busy one, too, and are never left out.
package rate

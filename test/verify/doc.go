// Package verify shows the promises I1 to I24 under every fault that one machine
// can make, and shows that the showing works.
//
//	sim_*       thousands of short histories: three nodes in one process, virtual
//	            time, real Redis and Postgres. Each mutant of the product must be
//	            caught here
//	procs_*     a minute and more: three processes of the product behind networks
//	            that break, on servers that die, with clocks that jump
//	loss_*      what is left when Redis has lost its data
//	scenario_*  single stories that the design was made for
//	cases_*     bugs of other people's waiting lines, one test each
//
// All of it is built with the tag faults and the overlay of test/fault/overlay,
// which is where the journal, the failpoints and the mutants come from; without
// the tag the package is empty. `make verify` builds and runs it. Its last line
// is the sum of what was shown, and its exit code says whether it was enough.
package verify

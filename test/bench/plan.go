package main

import "time"

// plan is how much is measured.
type plan struct {
	name    string
	rounds  int           // that count
	turn    time.Duration // of one side in a round
	tickets int           // distinct, polled by turns
	large   int           // members of the large line
	ticks   int           // of each batch size
	passes  int           // over all scripts
}

// The plans. A quick one is for whoever changes something, the full one for the page.
var plans = map[string]plan{
	"quick": {name: "quick", rounds: 7, turn: 500 * time.Millisecond, tickets: 100_000, large: 1_000_000, ticks: 7, passes: 3},
	"full":  {name: "full", rounds: 21, turn: 1500 * time.Millisecond, tickets: 200_000, large: 1_000_000, ticks: 15, passes: 7},
}

// small is how many stand in the line that the large one is compared with.
const small = 10_000

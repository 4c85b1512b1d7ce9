//go:build !race

package e2e

// raced tells whether the tests, and so the binary, are built with -race.
const raced = false

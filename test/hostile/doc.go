// Package hostile attacks a process of the product as a single client could, and
// measures what others notice: 500 connections that send a byte now and then,
// bodies without end, bodies nested ten thousand deep.
//
// Quiet and attacked rounds take turns, because a machine is never equally busy
// for long; the medians over the rounds are compared. The test is built with the
// tag faults and run by `make verify`, on the product as it is. It prints its
// figure in a line that begins with "hostile:".
package hostile

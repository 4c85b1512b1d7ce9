// Package telemetry is what the process tells about itself: logs as JSON
// lines, one optional line per state change of a member, and metrics for
// Prometheus.
//
// It promises that the number of series is bounded, whatever clients send:
// rooms, routes, methods and every other label have a limit, beyond which they
// are called "other". No label and no line of the package holds a member, an
// address or a token; the transition log names a member by a hash.
//
// What stands in shared Redis (sizes of lines, ages) is exported by the leader
// only, and forgotten when it stops leading, so that a sum over processes is
// right:
//
//	process 1 (leads)   queue_members{room="a",state="waiting"} 4711
//	process 2           -
//
// It does not trace, and it does not log requests: nothing is written per poll.
package telemetry

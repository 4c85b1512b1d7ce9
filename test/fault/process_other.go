//go:build unix && !linux

package fault

// Halted tells whether the process stands still. Nobody can tell here.
func (p *Process) Halted() bool { return false }

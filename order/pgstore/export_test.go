package pgstore

// InLine is how many orders wait for a transaction.
func (s *Store) InLine() int {
	s.groups.mu.Lock()
	defer s.groups.mu.Unlock()
	return len(s.groups.line)
}

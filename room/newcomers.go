package room

// maxWorkBits is the most proof of work that may be asked: above it a phone works
// for minutes.
const maxWorkBits = 24

// workBounds refuses bounds of proof of work that are none.
func (s Settings) workBounds() Problems {
	switch least, most := s.ProofOfWorkBits, s.ProofOfWorkMaxBits; {
	case most == 0 || least > 0 && most >= least:
		return nil
	case least == 0:
		return problem("must be 0 where proofOfWorkBits is 0, got %d", most).under("proofOfWorkMaxBits")
	default:
		return problem("must be 0 or at least proofOfWorkBits (%d), got %d", least, most).under("proofOfWorkMaxBits")
	}
}

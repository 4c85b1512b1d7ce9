package room

// MaxRelease is how many can be released by hand in one call: the largest batch
// that a room can have.
const MaxRelease = 10_000

// ParseRelease reads how many of those in line an operator lets go. The error is
// ErrJSON or Problems.
func ParseRelease(json []byte) (int, error) {
	doc, err := DecodeObject(json)
	if err != nil {
		return 0, err
	}
	var wrong Problems
	count, ok := wholeNumber(doc["count"])
	if !ok || count < 1 || count > MaxRelease {
		wrong = append(wrong, notWhole(1, MaxRelease, doc["count"]).under("count")...)
	}
	wrong = append(wrong, unknown(doc, "property of a release", "count")...)
	return count, wrong.err()
}

package room

// The values of binding: what becomes of a queue ticket or an entry token that is
// shown in another network than the one it was given in.
const (
	BindingOff     = "off"     // nobody looks
	BindingObserve = "observe" // it is counted, and good
	BindingStrict  = "strict"  // it is counted, and refused as a bad one is
)

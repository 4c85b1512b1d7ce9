package room

// unbuilt are the settings that have their place but no effect in this
// version. Operators get a refusal rather than a setting that does nothing.
// Whoever builds one deletes its row.
var unbuilt = []struct {
	field  string
	used   func(Settings) bool
	detail string
}{
	{"fail", func(s Settings) bool { return s.Fail != "closed" }, `must be "closed" in this version`},
}

// notYet comes last among the checks: a value that is wrong in any version is
// told as such.
func (s Settings) notYet() Problems {
	var wrong Problems
	for _, row := range unbuilt {
		if row.used(s) {
			wrong = append(wrong, Problem{row.field, row.detail})
		}
	}
	return wrong
}

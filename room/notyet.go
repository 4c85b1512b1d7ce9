package room

// unbuilt are the settings that have their place but no effect in this
// version. Operators get a refusal rather than a setting that does nothing.
// Whoever builds one deletes its row.
var unbuilt = []struct {
	field  string
	used   func(Settings) bool
	detail string
}{
	{"lanes", func(s Settings) bool { return len(s.Lanes) > 1 }, "must have one lane in this version"},
	{"priority", func(s Settings) bool { return s.Priority != "ratio" }, `must be "ratio" in this version`},
	{"maxWaitSeconds", func(s Settings) bool { return s.MaxWaitSeconds > 0 }, "must be 0 in this version: it promises no longest wait"},
	{"adaptive", func(s Settings) bool { return s.Adaptive }, "must be false in this version: the batch size is fixed"},
	{"stock", func(s Settings) bool { return s.Stock != nil }, "must be null in this version: a product's stock bounds its orders, not yet who is let in"},
	{"draw", func(s Settings) bool { return s.Draw }, "must be false in this version: places go by arrival"},
	{"fail", func(s Settings) bool { return s.Fail != "closed" }, `must be "closed" in this version`},
	{"binding", func(s Settings) bool { return s.Binding != "off" }, `must be "off" in this version`},
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

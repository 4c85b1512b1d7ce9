package room

// ParseNew reads what an operator wants a new room to be: its name and, if the
// defaults won't do, its settings. The error is ErrJSON or Problems.
func ParseNew(json []byte) (string, Settings, error) {
	doc, err := DecodeObject(json)
	if err != nil {
		return "", Settings{}, err
	}
	var wrong Problems
	name, _ := doc["name"].(string)
	if !ValidName(name) {
		wrong = append(wrong, problem("must match %s, got %s", nameForm, got(doc["name"])).under("name")...)
	}
	settings := Defaults()
	switch given := doc["settings"].(type) {
	case nil:
	case map[string]any:
		var problems Problems
		settings, problems = mergeDocument(settings, given)
		wrong = append(wrong, problems.under("settings.")...)
	default:
		wrong = append(wrong, problem("must be an object, got %s", got(given)).under("settings")...)
	}
	wrong = append(wrong, unknown(doc, "property of a room", "name", "settings")...)
	return name, settings, wrong.err()
}

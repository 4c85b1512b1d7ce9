package cli

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/linekeeper/linekeeper/room"
)

// SettingNames are the settings of a room, in the order of their JSON.
func SettingNames() []string {
	t := reflect.TypeFor[room.Settings]()
	names := make([]string, t.NumField())
	for i := range names {
		names[i] = t.Field(i).Tag.Get("json")
	}
	return names
}

// settingType is the Go type of a setting, nil for a name that is none.
func settingType(name string) reflect.Type {
	t := reflect.TypeFor[room.Settings]()
	for i := range t.NumField() {
		if t.Field(i).Tag.Get("json") == name {
			return t.Field(i).Type
		}
	}
	return nil
}

// ParseAssignments reads name=value for each setting, and message.LANGUAGE=text,
// into a JSON merge patch. An empty value gives the default back. The error is
// room.Problems, with everything that is wrong in any room: what depends on the
// room's other settings only the API can tell.
func ParseAssignments(args []string) (json.RawMessage, error) {
	doc := map[string]any{}
	var wrong room.Problems
	for _, arg := range args {
		if p := assign(doc, arg); p != nil {
			wrong = append(wrong, *p)
		}
	}
	patch, err := json.Marshal(doc)
	if err != nil {
		return nil, err
	}
	return patch, problemsOf(doc, patch, wrong)
}

// problemsOf adds what package room has to say of the patch. The defaults with
// some product are as good a room as any: no value that is right alone clashes
// with them. What a value needs beside it (draw needs admitsAt), the room may
// have.
func problemsOf(doc map[string]any, patch []byte, wrong room.Problems) error {
	base, product := room.Defaults(), "demo"
	base.Stock = &product
	_, err := room.MergePatch(base, patch)
	if problems, ok := err.(room.Problems); ok {
		err = nil
		for _, p := range problems {
			if _, given := doc[strings.FieldsFunc(p.Field+".", func(r rune) bool { return r == '.' || r == '[' })[0]]; given {
				wrong = append(wrong, p)
			}
		}
	}
	if err == nil && len(wrong) > 0 {
		return wrong
	}
	return err
}

// assign takes one argument into the document, or says why it can't.
func assign(doc map[string]any, arg string) *room.Problem {
	name, text, found := strings.Cut(arg, "=")
	if !found {
		return &room.Problem{Field: plain(arg), Detail: "must be written as setting=value"}
	}
	base, language, nested := strings.Cut(name, ".")
	switch {
	case settingType(base) == nil:
		return &room.Problem{Field: plain(name), Detail: "is not a setting" + meant(base)}
	case nested && base != "message":
		return &room.Problem{Field: plain(name), Detail: "has no parts; only message has, such as message.en"}
	}
	into, key, value := doc, base, any(literal(settingType(base), text))
	if nested {
		into, key = submap(doc, base), language
		if value = text; text == "" {
			value = nil
		}
	}
	if _, twice := into[key]; twice || into == nil {
		return &room.Problem{Field: plain(name), Detail: "is there twice"}
	}
	into[key] = value
	return nil
}

// submap is nil where the whole was given already.
func submap(doc map[string]any, name string) map[string]any {
	if _, there := doc[name]; !there {
		doc[name] = map[string]any{}
	}
	sub, _ := doc[name].(map[string]any)
	return sub
}

// meant finds the setting that differs in its letters' case alone.
func meant(name string) string {
	for _, known := range SettingNames() {
		if strings.EqualFold(known, name) {
			return "; did you mean " + known + "?"
		}
	}
	return "; `linekeeper config docs` lists them"
}

// literal is a value in JSON, by the type that the setting has. What does not
// fit becomes a text: package room then says what it must be.
func literal(t reflect.Type, text string) json.RawMessage {
	quoted, _ := json.Marshal(text) // a string always has its JSON
	switch {
	case text == "", text == "null":
		return json.RawMessage("null")
	case t == reflect.TypeFor[[]string]() && !json.Valid([]byte(text)):
		return list(text)
	case slices.Contains(textual, t), !json.Valid([]byte(text)):
		return quoted
	}
	return json.RawMessage(text)
}

// textual are the types whose JSON is a text, whatever the text looks like.
var textual = []reflect.Type{reflect.TypeFor[string](), reflect.TypeFor[*string](), reflect.TypeFor[*time.Time]()}

// list reads addresses as people type them, with commas between.
func list(text string) json.RawMessage {
	quoted, _ := json.Marshal(strings.Split(text, ","))
	return quoted
}

// Change is one field of a room or product before and after. From and To are
// JSON.
type Change struct {
	Field string          `json:"field"`
	From  json.RawMessage `json:"from"`
	To    json.RawMessage `json:"to"`
}

// String is the change in one line.
func (c Change) String() string {
	return fmt.Sprintf("%s %s -> %s", plain(c.Field), plain(string(c.From)), plain(string(c.To)))
}

// diff lists the fields whose JSON differs: settings in their order, others by
// name behind them.
func diff(before, after map[string]json.RawMessage) []Change {
	names := SettingNames()
	for name := range before {
		names = append(names, name)
	}
	for name := range after {
		names = append(names, name)
	}
	n := len(SettingNames())
	slices.Sort(names[n:])
	var changes []Change
	seen := map[string]bool{}
	for _, name := range names {
		if from, to := orNull(before[name]), orNull(after[name]); !seen[name] && string(from) != string(to) {
			changes = append(changes, Change{name, from, to})
		}
		seen[name] = true
	}
	return changes
}

func orNull(v json.RawMessage) json.RawMessage {
	if v == nil {
		return json.RawMessage("null")
	}
	return v
}

// fieldsOf takes v apart by the names of its JSON.
func fieldsOf(v any) (map[string]json.RawMessage, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var doc map[string]json.RawMessage
	return doc, json.Unmarshal(text, &doc)
}

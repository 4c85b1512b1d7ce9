package config

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

// Origins is a list of origins, each written as browsers send it, so that they
// can be compared byte by byte.
type Origins []string

var originForm = regexp.MustCompile(`^https?://([a-z0-9]([a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:.]+\])(:[1-9][0-9]{0,4})?$`)

// UnmarshalText reads comma-separated origins. An empty text is an empty list,
// so that a flag can undo a file. There is no wildcard: whoever may read answers
// may read tickets.
func (o *Origins) UnmarshalText(text []byte) error {
	*o = nil
	if len(text) == 0 {
		return nil
	}
	var list Origins
	for _, item := range strings.Split(string(text), ",") {
		origin := strings.TrimSpace(item)
		if !validOrigin(origin) {
			return fmt.Errorf("%q is not an origin like https://shop.example or http://localhost:3000, as browsers send it", origin)
		}
		list = append(list, origin)
	}
	*o = list
	return nil
}

// validOrigin wants the one form in which a browser sends it: without the port
// that its scheme implies.
func validOrigin(origin string) bool {
	u, err := url.Parse(origin)
	implied := map[string]string{"http": "80", "https": "443"}
	return err == nil && originForm.MatchString(origin) && u.Port() != implied[u.Scheme]
}

// MarshalText lists the origins as a setting has them.
func (o Origins) MarshalText() ([]byte, error) { return []byte(strings.Join(o, ",")), nil }

package config

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"strconv"
	"strings"
)

// errURL says no more than this, because a URL that can't be taken apart can't
// be printed either: nobody knows where its password is.
var errURL = errors.New("is not a URL like scheme://user:password@host:port/path (escape , as %2C, @ as %40 and / as %2F in a password)")

// URL is an address that may hold a password, or several such addresses,
// comma-separated. However it is printed, marshalled or logged, passwords are
// masked; what can't be parsed reads REDACTED as a whole.
type URL string

// Reveal gives the URL with its password, to the one place that connects.
func (u URL) Reveal() string { return string(u) }

// String masks passwords.
func (u URL) String() string {
	if u == "" {
		return ""
	}
	list, err := u.split()
	if err != nil {
		return redacted
	}
	masked := make([]string, len(list))
	for i, a := range list {
		masked[i] = a.masked()
	}
	return strings.Join(masked, ",")
}

// Format masks passwords for every verb.
func (u URL) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, u.String()) }

// MarshalText masks passwords in JSON and YAML.
func (u URL) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

// LogValue masks passwords in slog.
func (u URL) LogValue() slog.Value { return slog.StringValue(u.String()) }

// UnmarshalText takes the URL as it is; Check looks at it.
func (u *URL) UnmarshalText(text []byte) error {
	*u = URL(text)
	return nil
}

// postgres checks what pgx would only find out at the first connection. Key
// and value strings are refused: their passwords could not be masked.
func (u URL) postgres() error {
	a, err := parseAddress(string(u))
	if err != nil {
		return err
	}
	if a.scheme != "postgres" && a.scheme != "postgresql" {
		return fmt.Errorf("has scheme %q, not postgres", a.scheme)
	}
	return nil
}

// split takes a list apart. Commas between the hosts of one URL do not count.
func (u URL) split() ([]address, error) {
	var list []address
	for rest := string(u); rest != ""; {
		one, more := cutURL(rest)
		a, err := parseAddress(one)
		if err != nil {
			return nil, err
		}
		list, rest = append(list, a), more
	}
	return list, nil
}

// cutURL ends a URL at a comma that a scheme follows.
func cutURL(s string) (one, more string) {
	for i := range len(s) {
		if s[i] != ',' {
			continue
		}
		scheme, _, ok := strings.Cut(s[i+1:], "://")
		if ok && !strings.ContainsAny(scheme, ",/@:?") {
			return s[:i], s[i+1:]
		}
	}
	return s, ""
}

// address is one URL in parts. net/url is not used for the whole, because it
// refuses the several hosts of Sentinel and Postgres.
type address struct {
	scheme string
	user   *url.Userinfo
	hosts  []string // host or host:port
	path   []string // without empty parts
	query  url.Values
}

func parseAddress(raw string) (address, error) {
	scheme, rest, ok := strings.Cut(raw, "://")
	if !ok || scheme == "" || strings.ContainsAny(scheme, ",/@:?#") {
		return address{}, errURL
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	a := address{scheme: scheme}
	if err := a.parseAuthority(rest[:end]); err != nil {
		return address{}, err
	}
	return a, a.parseTail(rest[end:])
}

func (a *address) parseAuthority(authority string) error {
	hosts := authority
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		// net/url has the rules for escapes; it is only asked about this part.
		parsed, err := url.Parse("x://" + authority[:at] + "@host")
		if err != nil {
			return errURL
		}
		a.user, hosts = parsed.User, authority[at+1:]
	}
	if hosts == "" {
		return nil // Postgres by a socket has none; the others ask for one
	}
	for _, host := range strings.Split(hosts, ",") {
		if !validHost(host) {
			return errURL
		}
		a.hosts = append(a.hosts, host)
	}
	return nil
}

// parseTail refuses an @: it stands there when a password holds a slash, and
// then the password would be printed as part of the path.
func (a *address) parseTail(tail string) error {
	parsed, err := url.Parse(tail)
	if err != nil || strings.ContainsRune(tail, '@') || parsed.Fragment != "" {
		return errURL
	}
	if a.query, err = url.ParseQuery(parsed.RawQuery); err != nil {
		return errURL
	}
	a.path = strings.FieldsFunc(parsed.Path, func(r rune) bool { return r == '/' })
	return nil
}

// validHost wants a number for a port: in redis://:secret the password stands
// where the port should be.
func validHost(host string) bool {
	parsed, err := url.Parse("x://" + host)
	if err != nil || parsed.Host != host || parsed.Hostname() == "" {
		return false
	}
	if parsed.Port() == "" {
		return !strings.HasSuffix(host, ":")
	}
	port, err := strconv.ParseUint(parsed.Port(), 10, 16)
	return err == nil && port > 0
}

func (a address) masked() string {
	var b strings.Builder
	b.WriteString(a.scheme + "://")
	if a.user != nil {
		b.WriteString(url.PathEscape(a.user.Username()))
		if _, ok := a.user.Password(); ok {
			b.WriteString(":" + redacted)
		}
		b.WriteByte('@')
	}
	b.WriteString(strings.Join(a.hosts, ","))
	for _, part := range a.path {
		b.WriteString("/" + part)
	}
	if q := a.maskedQuery(); q != "" {
		b.WriteString("?" + q)
	}
	return b.String()
}

// maskedQuery hides by name: password, sslpassword, sentinel_password, ...
func (a address) maskedQuery() string {
	masked := url.Values{}
	for name, values := range a.query {
		if strings.Contains(strings.ToLower(name), "pass") {
			values = []string{redacted}
		}
		masked[name] = values
	}
	return masked.Encode()
}

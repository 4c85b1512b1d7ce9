// Package cli is the operators' API as a shell sees it: a client that sends
// what was typed, and tables of what came back.
//
// It promises that what can be known to be wrong without asking is told before
// anything is sent, that a refusal of the API is told in its own words with
// every field at fault, that JSON is printed as the API gave it, and that a
// declarative file never deletes a room and changes nothing the second time.
//
//	rooms.yaml --ReadRooms--> Rooms --Plan--> create / change / unchanged --Apply--> API
//	key=value  --ParseAssignments--> merge patch --PatchRoom--> API
//
// It decides nothing about rooms: ranges are package room's, rights and
// versions the API's. It keeps no state, and never follows a redirect, which
// could carry the admin token elsewhere.
package cli

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/linekeeper/linekeeper/internal/config"
)

// Remote is where the operators' API is, and who asks. Commands embed it.
type Remote struct {
	AdminURL   config.URL    `env:"LINEKEEPER_ADMIN_URL" default:"http://127.0.0.1:8081" placeholder:"URL" help:"Where the operators' API is."`
	AdminToken config.Secret `env:"LINEKEEPER_ADMIN_TOKEN" placeholder:"SECRET" help:"Your admin token. Not taken from the command line."`
}

// Check reports what is missing or can't be used, as config.Problem.
func (r Remote) Check() error {
	var wrong []error
	if _, err := r.base(); err != nil {
		wrong = append(wrong, config.Problem{Setting: "LINEKEEPER_ADMIN_URL", Err: err})
	}
	switch {
	case r.AdminToken == "":
		wrong = append(wrong, config.Problem{Setting: "LINEKEEPER_ADMIN_TOKEN",
			Err: errors.New("is required; beside `linekeeper dev` set LINEKEEPER_ADMIN_TOKEN_FILE=.linekeeper/admin-token")})
	case strings.ContainsFunc(r.AdminToken.Reveal(), func(c rune) bool { return c <= ' ' || c > '~' }):
		wrong = append(wrong, config.Problem{Setting: "LINEKEEPER_ADMIN_TOKEN", Err: errors.New("has characters that no token has")})
	}
	return errors.Join(wrong...)
}

// base is the address without a slash at the end. Its errors repeat nothing of
// the text: people paste logins into URLs.
func (r Remote) base() (string, error) {
	u, err := url.Parse(r.AdminURL.Reveal())
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", errors.New("is not a plain http://host:port or https://host:port")
	}
	return strings.TrimRight(u.String(), "/"), nil
}

// callTimeout is above what the API allows itself for one call.
const callTimeout = 15 * time.Second

// Client makes a client of what Check has passed.
func (r Remote) Client() *Client {
	base, _ := r.base() // Check has seen it; an empty base fails at the first call
	return &Client{base: base, token: r.AdminToken, http: &http.Client{
		Timeout:       callTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

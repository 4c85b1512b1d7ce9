package identity

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
)

// maxSet bounds what is read of a source, in bytes.
const maxSet = 256 << 10

// From is the source that a text names: an address, or the path of a file.
func From(text string) (Source, error) {
	if !strings.Contains(text, "://") {
		return file(text), nil
	}
	if err := CheckURL(text); err != nil {
		return nil, err
	}
	return func(ctx context.Context) ([]byte, error) { return get(ctx, text) }, nil
}

// CheckURL tells whether keys can be had from an address without others having a
// say in them: it must be https, or http on this machine.
func CheckURL(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || u.Fragment != "" {
		return errors.New("is not an address like https://host/path, without user and fragment")
	}
	if u.Scheme == "https" || u.Scheme == "http" && loopback(u.Hostname()) {
		return nil
	}
	return errors.New("must be https, or http on this machine")
}

func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

func file(path string) Source {
	return func(context.Context) ([]byte, error) {
		f, err := os.Open(path)
		if err != nil {
			return nil, err // names the path
		}
		defer func() { _ = f.Close() }()
		return bounded(f, path)
	}
}

// client follows no redirect: where the keys are is for the operator to say.
var client = &http.Client{
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

func get(ctx context.Context, address string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %d", address, resp.StatusCode)
	}
	return bounded(resp.Body, address)
}

func bounded(r io.Reader, name string) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxSet+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", name, err)
	case len(text) > maxSet:
		return nil, fmt.Errorf("%s is larger than %d KiB", name, maxSet>>10)
	}
	return text, nil
}

// Discovered is the source that an OpenID provider names in its discovery
// document, which is read each time.
func Discovered(issuer string) Source {
	return func(ctx context.Context) ([]byte, error) {
		text, err := get(ctx, strings.TrimSuffix(issuer, "/")+"/.well-known/openid-configuration")
		if err != nil {
			return nil, err
		}
		var doc struct {
			Issuer string `json:"issuer"`
			Keys   string `json:"jwks_uri"`
		}
		if err := json.Unmarshal(text, &doc); err != nil {
			return nil, fmt.Errorf("the discovery document of %s is not JSON", issuer)
		}
		// As OpenID Connect Discovery section 4.3 has it: else one tenant of a
		// provider could speak for another.
		if doc.Issuer != issuer {
			return nil, fmt.Errorf("the discovery document of %s is that of another issuer", issuer)
		}
		if err := CheckURL(doc.Keys); err != nil {
			return nil, fmt.Errorf("the jwks_uri of %s %w", issuer, err)
		}
		return get(ctx, doc.Keys)
	}
}

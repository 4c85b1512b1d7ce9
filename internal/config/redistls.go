package config

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

// The parameters of a URL whose scheme asks for TLS. They have the names that
// Postgres gives them: sslrootcert is who must have signed the server's
// certificate, in place of those whom this machine trusts; sslcert and sslkey are
// ours, for a server that asks for one.
const (
	rootParameter = "sslrootcert"
	certParameter = "sslcert"
	keyParameter  = "sslkey"
)

func (a address) secure() bool { return strings.HasPrefix(a.scheme, "rediss") }

// tls is nil where the URL asks for none. It names no server: go-redis takes the
// name of each node that it dials. Without parameters the machine's own authorities
// count. Our own certificate is read at each handshake, because it may be one of
// days that something renews.
func (a address) tls() (*tls.Config, error) {
	root, cert, key := a.query.Get(rootParameter), a.query.Get(certParameter), a.query.Get(keyParameter)
	if !a.secure() {
		if root+cert+key != "" {
			return nil, errors.New("has parameters for TLS, which takes rediss:// or rediss-sentinel://")
		}
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if root != "" {
		pem, err := os.ReadFile(root)
		if err != nil {
			return nil, fmt.Errorf("has an %s that can't be read: %w", rootParameter, err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("has an %s without a certificate in it: %s", rootParameter, root)
		}
	}
	if (cert == "") != (key == "") {
		return nil, fmt.Errorf("has one of %s and %s, which go together", certParameter, keyParameter)
	}
	if cert == "" {
		return c, nil
	}
	load := func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(cert, key)
		return &pair, err
	}
	if _, err := load(nil); err != nil {
		return nil, fmt.Errorf("has an %s and %s that can't be used: %w", certParameter, keyParameter, err)
	}
	c.GetClientCertificate = load
	return c, nil
}

// parameters refuses all that are not for TLS or in more: those that go-redis knows
// would undo what baseOptions sets.
func (a address) parameters(more ...string) error {
	known := append([]string{rootParameter, certParameter, keyParameter}, more...)
	for name, values := range a.query {
		switch {
		case !slices.Contains(known, name):
			return fmt.Errorf("has an unknown parameter %q", name)
		case len(values) > 1:
			return fmt.Errorf("has the parameter %q twice", name)
		}
	}
	return nil
}

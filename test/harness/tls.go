package harness

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/internal/devstack"
)

// Authority signs certificates, for one test.
type Authority struct {
	// File is its own certificate.
	File string

	t    testing.TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewAuthority makes one that nobody trusts.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{t: t}
	a.cert = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority of " + t.Name()},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	a.File, _, a.key = a.issue(a.cert)
	return a
}

// Issue makes a certificate for 127.0.0.1, as a server's or a client's, and its key.
func (a *Authority) Issue(name string) (cert, key string) {
	a.t.Helper()
	cert, key, _ = a.issue(&x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
	return cert, key
}

func (a *Authority) issue(c *x509.Certificate) (certFile, keyFile string, key *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(a.t, err)
	signer := a.key
	if signer == nil {
		signer = key // the authority's own
	}
	der, err := x509.CreateCertificate(rand.Reader, c, a.cert, key.Public(), signer)
	require.NoError(a.t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(a.t, err)
	dir := a.t.TempDir()
	write := func(name, kind string, bytes []byte) string {
		path := filepath.Join(dir, name)
		require.NoError(a.t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes}), 0o600))
		return path
	}
	return write("cert.pem", "CERTIFICATE", der), write("key.pem", "PRIVATE KEY", private), key
}

// SecureRedis starts a redis-server of the test's own that speaks TLS at the address
// returned, with whoever shows a certificate of a's.
func SecureRedis(t testing.TB, a *Authority) (addr string) {
	t.Helper()
	cert, key := a.Issue("redis")
	port := FreePorts(t, 1)[0]
	RedisServer(t, "--tls-port", port, "--tls-cert-file", cert, "--tls-key-file", key,
		"--tls-ca-cert-file", a.File, "--tls-auth-clients", "yes")
	return "127.0.0.1:" + port
}

// SecurePostgres makes a server speak TLS, with a certificate of a's. The files are
// written by the server itself, which alone may read the key.
func SecurePostgres(t testing.TB, p *devstack.Postgres, a *Authority) {
	t.Helper()
	cert, key := a.Issue("postgres")
	for name, path := range map[string]string{"server.crt": cert, "server.key": key} {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		// COPY writes a line end as two characters, which the program takes back.
		err = p.Exec(t.Context(), "postgres", fmt.Sprintf(`COPY (SELECT '%s') TO PROGRAM 'umask 077; printf %%b "$(cat)" > %s'`, text, name))
		require.NoError(t, err)
	}
	for _, sql := range []string{"ALTER SYSTEM SET ssl = on", "SELECT pg_reload_conf()"} {
		require.NoError(t, p.Exec(t.Context(), "postgres", sql))
	}
	// It has been told to, which is all that the answer says.
	secure := strings.Replace(p.DSN("postgres"), "sslmode=disable", "sslmode=require", 1)
	Eventually(t, time.Minute, "Postgres speaks TLS", func() bool {
		c, err := pgx.Connect(t.Context(), secure)
		if err == nil {
			_ = c.Close(t.Context())
		}
		return err == nil
	})
}

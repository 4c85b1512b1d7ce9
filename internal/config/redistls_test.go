package config_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/internal/config"
	"github.com/linekeeper/linekeeper/test/harness"
)

// TestRedisOverTLSIsWhomOurAuthorityHasSigned is on a server that wants to know us
// as well.
func TestRedisOverTLSIsWhomOurAuthorityHasSigned(t *testing.T) {
	t.Parallel()
	ours, theirs := harness.NewAuthority(t), harness.NewAuthority(t)
	addr := harness.SecureRedis(t, ours)
	cert, key := ours.Issue("linekeeper")
	wrong, wrongKey := theirs.Issue("linekeeper")
	ping := func(parameters string) error {
		o, err := config.RedisOptions(config.URL("rediss://" + addr + parameters))
		require.NoError(t, err)
		c := config.OpenRedis(o)
		defer c.Close()
		return c.Ping(t.Context()).Err()
	}
	mine := "&sslcert=" + cert + "&sslkey=" + key
	require.NoError(t, ping("?sslrootcert="+ours.File+mine))
	var unverified *tls.CertificateVerificationError
	require.ErrorAs(t, ping("?sslrootcert="+theirs.File+mine), &unverified)
	require.ErrorAs(t, ping("?sslcert="+cert+"&sslkey="+key), &unverified, "nobody of this machine's has signed it")
	require.Error(t, ping("?sslrootcert="+ours.File), "it wants to know us, too; it may hang up before it has said so")
	require.Error(t, ping("?sslrootcert="+ours.File+"&sslcert="+wrong+"&sslkey="+wrongKey))

	// A certificate that is renewed is shown from the next connection on.
	o, err := config.RedisOptions(config.URL("rediss://" + addr + "?sslrootcert=" + ours.File + mine))
	require.NoError(t, err)
	renewed, renewedKey := ours.Issue("linekeeper, renewed")
	require.NoError(t, errors.Join(os.Rename(renewed, cert), os.Rename(renewedKey, key)))
	pair, err := o.TLSConfig.GetClientCertificate(nil)
	require.NoError(t, err)
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	require.NoError(t, err)
	require.Equal(t, "linekeeper, renewed", leaf.Subject.CommonName)
}

func TestEveryKindOfRedisTakesTheParametersOfTLS(t *testing.T) {
	t.Parallel()
	a := harness.NewAuthority(t)
	cert, key := a.Issue("linekeeper")
	parameters := "?sslrootcert=" + a.File + "&sslcert=" + cert + "&sslkey=" + key
	for url, master := range map[string]string{
		"rediss://h" + parameters:                                         "",
		"rediss://a" + parameters + ",rediss://b":                         "",
		"rediss://a" + parameters + ",rediss://b" + parameters:            "",
		"rediss-sentinel://a,b/m" + parameters:                            "m",
		"rediss-sentinel://a/m/1" + parameters + "&sentinel_password=s":   "m",
		"rediss-sentinel://a/m?sentinel_username=u&sslrootcert=" + a.File: "m",
	} {
		o, err := config.RedisOptions(config.URL(url))
		require.NoError(t, err, url)
		require.Equal(t, master, o.MasterName)
		require.NotNil(t, o.TLSConfig, url)
		require.NotNil(t, o.TLSConfig.RootCAs, url)
		require.EqualValues(t, tls.VersionTLS12, o.TLSConfig.MinVersion)
		lock, err := config.LockOptions(config.URL(url), 0)
		require.NoError(t, err)
		require.NotNil(t, lock.TLSConfig, "the lock goes the same way")
	}
}

func TestParametersOfTLSThatCantBeUsedAreRefused(t *testing.T) {
	t.Parallel()
	a := harness.NewAuthority(t)
	cert, key := a.Issue("linekeeper")
	_, otherKey := a.Issue("other")
	empty := filepath.Join(t.TempDir(), "empty.pem")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	for url, want := range map[string]string{
		"redis://h?sslrootcert=" + a.File:                    "takes rediss://",
		"redis-sentinel://h/m?sslrootcert=" + a.File:         "takes rediss://",
		"rediss://h?sslrootcert=/nowhere":                    "an sslrootcert that can't be read",
		"rediss://h?sslrootcert=" + empty:                    "an sslrootcert without a certificate",
		"rediss://h?sslcert=" + cert:                         "which go together",
		"rediss://h?sslkey=" + key:                           "which go together",
		"rediss://h?sslcert=" + cert + "&sslkey=" + otherKey: "can't be used",
		"rediss://h?sslmode=disable":                         `unknown parameter "sslmode"`,
		"rediss://h?sslrootcert=/a&sslrootcert=/b":           "twice",
		"rediss://a,rediss://b?sslrootcert=" + a.File:        "different parameters",
		"rediss://a,redis://b":                               "different schemes",
	} {
		_, err := config.RedisOptions(config.URL(url))
		require.ErrorContains(t, err, want, url)
	}
}

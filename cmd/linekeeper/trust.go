package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
)

// trusted makes a refusal of an error that waiting does not mend: the server's
// certificate is not one that we trust, or it wants to see one of ours.
func trusted(setting string, err error) error {
	var unverified *tls.CertificateVerificationError
	var remote *net.OpError
	switch {
	case errors.As(err, &unverified):
		return refusal{fmt.Errorf("%w: %s must name the host that the certificate is for, and with sslrootcert=FILE who has signed it", err, setting)}
	case errors.As(err, &remote) && remote.Op == "remote error":
		return refusal{fmt.Errorf("%w: the server does not accept our certificate; %s must name one, with sslcert=FILE and sslkey=FILE", err, setting)}
	}
	return err
}

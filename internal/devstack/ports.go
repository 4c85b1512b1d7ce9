package devstack

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports are taken from below the ranges that systems use for outgoing
// connections (Linux from 32768, macOS from 49152): none of those can take a
// port between our look and the server's.
const firstPort, lastPort = 12000, 29999

// freePort returns a port that nobody listens on: want, if it is free.
func freePort(want int) (int, error) {
	if want != 0 && free(want) {
		return want, nil
	}
	for range 100 {
		if port := firstPort + rand.IntN(lastPort-firstPort+1); free(port) {
			return port, nil
		}
	}
	return 0, fmt.Errorf("no free port of 127.0.0.1 between %d and %d", firstPort, lastPort)
}

func free(port int) bool {
	l, err := net.Listen("tcp", address(port))
	if err == nil {
		_ = l.Close()
	}
	return err == nil
}

func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/linekeeper/linekeeper/api/problem"
	"github.com/linekeeper/linekeeper/internal/config"
)

// healthcheckCmd is what a container's probe runs: the image has no curl.
type healthcheckCmd struct {
	Listen  string        `env:"LINEKEEPER_LISTEN" default:":8080" help:"Address of the public API, as the serving process has it."`
	Timeout time.Duration `default:"3s" help:"How long to wait for the answer."`
}

// Check wants an address that can be asked.
func (c *healthcheckCmd) Check() error {
	_, port, err := net.SplitHostPort(c.Listen)
	if err != nil || port == "" || port == "0" {
		return config.Problem{Setting: "LINEKEEPER_LISTEN", Err: errors.New("is not host:port, or has port 0, which nobody can ask")}
	}
	return nil
}

// Run asks the process on this machine, whatever address it listens on, and
// says one line.
func (c *healthcheckCmd) Run(ctx context.Context, std streams) error {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	url := "http://" + loopback(c.Listen) + "/readyz"
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	// No proxy: a variable of the environment must not lead away from this machine.
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("not ready: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		var p problem.Problem
		_ = json.NewDecoder(io.LimitReader(resp.Body, 16<<10)).Decode(&p) // what can't be read says nothing
		return fmt.Errorf("not ready: %s answers %d %s", url, resp.StatusCode, p.Detail)
	}
	_, err = fmt.Fprintln(std.out, "ready")
	return err
}

// loopback is the address at which this machine reaches a listener. Check has
// seen that it can be taken apart.
func loopback(listen string) string {
	host, port, _ := net.SplitHostPort(listen)
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
		if ip != nil && ip.To4() == nil {
			host = "::1"
		}
	}
	return net.JoinHostPort(host, port)
}

package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/linekeeper/linekeeper/internal/config"
)

// Client asks the operators' API. Its errors are Refusal where the API said no.
type Client struct {
	base  string
	token config.Secret
	http  *http.Client
}

// maxAnswer bounds what is read: the address may be anybody's.
const maxAnswer = 32 << 20

// request is one call. body is nil for none; version is what If-Match says: 0
// for nothing, anyVersion for whatever is there.
type request struct {
	method, path string
	body         any
	version      int64
}

const anyVersion = -1

// answer is what the API said yes with.
type answer struct {
	body    []byte
	version int64 // from the ETag; 0 without one
}

func (c *Client) do(ctx context.Context, r request) (answer, error) {
	req, err := c.prepare(ctx, r)
	if err != nil {
		return answer{}, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return answer{}, c.unreachable(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return answer{}, c.unreachable(err)
	}
	if resp.StatusCode >= http.StatusMultipleChoices {
		return answer{}, c.refused(resp, body)
	}
	version, _ := strconv.ParseInt(strings.Trim(resp.Header.Get("ETag"), `"`), 10, 64)
	return answer{body, version}, nil
}

func (c *Client) prepare(ctx context.Context, r request) (*http.Request, error) {
	var body io.Reader
	if r.body != nil {
		text, err := json.Marshal(r.body)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, r.method, c.base+"/admin/v1"+r.path, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+c.token.Reveal())
	if r.body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	switch {
	case r.version == anyVersion:
		req.Header.Set("If-Match", "*")
	case r.version > 0:
		req.Header.Set("If-Match", strconv.Quote(strconv.FormatInt(r.version, 10)))
	}
	return req, nil
}

// unreachable says where was asked, and drops the method and the URL that
// net/http repeats.
func (c *Client) unreachable(err error) error {
	var asked *url.Error
	if errors.As(err, &asked) {
		err = asked.Err
	}
	return fmt.Errorf("%s does not answer: %w; is Linekeeper serving there? LINEKEEPER_ADMIN_URL names another place", c.base, err)
}

// seen is the If-Match of a version that somebody typed; 0 is whatever is there.
func seen(version int64) int64 {
	if version == 0 {
		return anyVersion
	}
	return version
}

func roomPath(name string, more ...string) string {
	path := "/rooms/" + url.PathEscape(name)
	for _, m := range more {
		path += "/" + m
	}
	return path
}

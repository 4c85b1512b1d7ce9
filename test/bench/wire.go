package main

import (
	"bytes"
	"errors"
	"fmt"
)

var (
	headEnd       = []byte("\r\n\r\n")
	contentLength = []byte("\r\nContent-Length: ")
	errNotHTTP    = errors.New("not an answer of HTTP/1.1 with a Content-Length")
)

// answer is where the parts of a response are in a buffer.
type answer struct {
	status     int
	body, size int // the body begins at body; size is that of the whole response
}

// parse looks for a response at the beginning of b. It is not complete (size 0)
// while more is to be read. It reads the status line and one header, because
// whatever else it did would be taken from the servers.
func parse(b []byte) (answer, error) {
	head := bytes.Index(b, headEnd)
	if head < 0 {
		return answer{}, nil
	}
	if head < len("HTTP/1.1 200") || string(b[:9]) != "HTTP/1.1 " {
		return answer{}, errNotHTTP
	}
	a := answer{status: int(b[9]-'0')*100 + int(b[10]-'0')*10 + int(b[11]-'0'), body: head + len(headEnd)}
	at := bytes.Index(b[:head], contentLength)
	if at < 0 {
		return answer{}, errNotHTTP
	}
	length := 0
	for _, digit := range b[at+len(contentLength) : head+1] {
		if digit < '0' || digit > '9' {
			break
		}
		length = length*10 + int(digit-'0')
	}
	if len(b) < a.body+length {
		return answer{}, nil
	}
	a.size = a.body + length
	return a, nil
}

// number reads the number behind name in a body; -1 if there is none.
func number(body, name []byte) int64 {
	at := bytes.Index(body, name)
	if at < 0 {
		return -1
	}
	var n int64 = -1
	for _, digit := range body[at+len(name):] {
		if digit < '0' || digit > '9' {
			break
		}
		n = max(n, 0)*10 + int64(digit-'0')
	}
	return n
}

func wrongStatus(got, want int, body []byte) error {
	return fmt.Errorf("answered %d instead of %d: %.300s", got, want, body)
}

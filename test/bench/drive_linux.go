package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"syscall"
	"time"
)

// drive asks servers over conns connections, dealt out by turns, for d: each the next
// request as soon as the last is answered. It ends with the first wrong answer.
//
// It is one loop over epoll and not a goroutine for each connection: what the load
// takes of the two cores is taken from all sides, and makes them look more alike
// than they are.
func drive(ctx context.Context, addrs []string, conns int, d time.Duration, t traffic) (tally, error) {
	l, err := newLoop(addrs, conns, t)
	if err != nil {
		return tally{}, err
	}
	defer l.close()
	start := time.Now()
	for _, s := range l.sockets {
		if err := l.ask(s); err != nil {
			return tally{}, err
		}
	}
	err = l.run(ctx, start.Add(d))
	return tally{l.answered, time.Since(start).Seconds()}, err
}

// loop is the connections of one load.
type loop struct {
	traffic  traffic
	epoll    int
	sockets  []*socket
	asking   int // connections that wait for an answer
	answered int
}

// socket is one connection. It asks one thing at a time.
type socket struct {
	fd, number int
	request    []byte
	id         int
	buf        []byte
	filled     int
}

func newLoop(addrs []string, conns int, t traffic) (*loop, error) {
	epoll, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return nil, err
	}
	l := &loop{traffic: t, epoll: epoll}
	for i := range conns {
		addr := addrs[i%len(addrs)]
		if err := l.connect(i, addr); err != nil {
			l.close()
			return nil, fmt.Errorf("connect to %s: %w", addr, err)
		}
	}
	return l, nil
}

func (l *loop) connect(number int, addr string) error {
	to, err := netip.ParseAddrPort(addr)
	if err != nil {
		return err
	}
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	l.sockets = append(l.sockets, &socket{fd: fd, number: number, buf: make([]byte, mostAnswer)})
	return errors.Join(
		syscall.Connect(fd, &syscall.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()}),
		syscall.SetNonblock(fd, true),
		syscall.SetsockoptInt(fd, syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1),
		syscall.EpollCtl(l.epoll, syscall.EPOLL_CTL_ADD, fd, &syscall.EpollEvent{Events: syscall.EPOLLIN, Fd: int32(number)}),
	)
}

func (l *loop) close() {
	for _, s := range l.sockets {
		_ = syscall.Close(s.fd)
	}
	_ = syscall.Close(l.epoll)
}

// ask sends the next request of s, if there is one.
func (l *loop) ask(s *socket) error {
	s.request, s.id = l.traffic.next(s.number)
	if s.request == nil {
		return nil
	}
	n, err := syscall.Write(s.fd, s.request)
	if err == nil && n < len(s.request) {
		err = errors.New("a request does not fit into an empty socket")
	}
	if err != nil {
		return fmt.Errorf("%.60q: %w", s.request, err)
	}
	l.asking++
	return nil
}

// run answers and asks until the deadline, and then waits for what is under way.
func (l *loop) run(ctx context.Context, until time.Time) error {
	events := make([]syscall.EpollEvent, len(l.sockets))
	for l.asking > 0 {
		n, err := syscall.EpollWait(l.epoll, events, int(patience.Milliseconds()))
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil:
			return err
		case n == 0:
			return fmt.Errorf("%d requests have no answer within %v", l.asking, patience)
		case ctx.Err() != nil:
			return ctx.Err()
		}
		over := !time.Now().Before(until)
		for _, e := range events[:n] {
			if err := l.read(l.sockets[e.Fd], over); err != nil {
				return err
			}
		}
	}
	return nil
}

// read takes what has come, and asks again once it is a whole answer.
func (l *loop) read(s *socket, over bool) error {
	n, err := syscall.Read(s.fd, s.buf[s.filled:])
	switch {
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.EINTR):
		return nil
	case err == nil && n <= 0:
		err = errors.New("the connection has ended, or the answer does")
	}
	var a answer
	if err == nil {
		s.filled += n
		a, err = parse(s.buf[:s.filled])
	}
	if err == nil && a.size > 0 {
		err = l.traffic.check(s.id, a.status, s.buf[a.body:a.size])
	}
	if err != nil {
		return fmt.Errorf("%.60q: %w", s.request, err)
	}
	if a.size == 0 {
		return nil
	}
	l.answered++
	l.asking--
	s.filled = 0
	if over {
		return nil
	}
	return l.ask(s)
}

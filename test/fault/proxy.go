package fault

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"
)

// Way is a direction through a Proxy, or both.
type Way int

const (
	// ToServer is what clients say.
	ToServer Way = 1 << iota
	// ToClient is what the server says.
	ToClient
	// BothWays is everything.
	BothWays = ToServer | ToClient
)

// Proxy stands between clients and one server, on a port of 127.0.0.1 of its
// own, and breaks the network between them:
//
//	Hold    bytes wait, and arrive late: a short interruption, which TCP mends
//	Cut     bytes are lost, and at Heal the connections that lost some end: a
//	        long one. One way cut, the server still hears and is not heard.
//	Reset   every connection ends at once, on both sides
//	Refuse  new connections end at once; those there are go on
//	Lose    some answers are lost, and the connection with them
//	Slow    every piece takes so much longer
//
// A connection that is made while bytes are held or cut is accepted, and then
// silent: that the peer is out of reach shows one timeout later than in a real
// network.
type Proxy struct {
	listener net.Listener
	target   string
	dial     func(ctx context.Context, network, addr string) (net.Conn, error)
	dice     *Dice

	mu      sync.Mutex
	changed chan struct{} // closed, and made anew, when a state below changes
	held    Way
	cut     Way
	refuse  bool
	lose    float64
	slow    time.Duration
	closed  bool
	links   map[*link]bool
	counts  ProxyCounts
	wg      sync.WaitGroup
}

// ProxyCounts are what a proxy has done.
type ProxyCounts struct {
	Links  int // connections made
	Lost   int // answers lost by Lose
	Broken int // connections ended by the proxy
	Cut    int // pieces dropped by Cut
}

// NewProxy listens, and connects each client to target. d decides which answers
// are lost.
func NewProxy(target string, d *Dice) (*Proxy, error) {
	return NewProxyBy(target, d, (&net.Dialer{Timeout: 5 * time.Second}).DialContext)
}

// NewProxyBy is NewProxy with a dialer, for instance Postgres.DialFunc.
func NewProxyBy(target string, d *Dice, dial func(ctx context.Context, network, addr string) (net.Conn, error)) (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for %s: %w", target, err)
	}
	p := &Proxy{listener: l, target: target, dial: dial, dice: d, changed: make(chan struct{}), links: map[*link]bool{}}
	p.wg.Go(p.accept)
	return p, nil
}

// Addr is where clients connect.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Hold has bytes wait in this direction, besides those held already.
func (p *Proxy) Hold(w Way) { p.change(func() { p.held |= w }) }

// Cut drops bytes in this direction, besides those cut already.
func (p *Proxy) Cut(w Way) { p.change(func() { p.cut |= w }) }

// Refuse has new connections end at once.
func (p *Proxy) Refuse() { p.change(func() { p.refuse = true }) }

// Lose loses the answer to a request with probability odds: the server gets it
// and does what it says, and the client reads the end of the connection.
func (p *Proxy) Lose(odds float64) { p.change(func() { p.lose = odds }) }

// Slow delays each piece, in both directions.
func (p *Proxy) Slow(d time.Duration) { p.change(func() { p.slow = d }) }

// Heal takes everything back. What was held arrives; connections that have lost
// bytes end.
func (p *Proxy) Heal() {
	p.change(func() {
		p.held, p.cut, p.refuse, p.lose, p.slow = 0, 0, false, 0, 0
		for l := range p.links {
			if l.lossy {
				p.breakLink(l)
			}
		}
	})
}

// Reset ends every connection on both sides, with RST. What was held is lost.
func (p *Proxy) Reset() {
	p.change(func() {
		for l := range p.links {
			p.breakLink(l)
		}
	})
}

// Counts is what has happened so far.
func (p *Proxy) Counts() ProxyCounts {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.counts
}

// Close ends the proxy and every connection, and leaves nothing behind.
func (p *Proxy) Close() {
	_ = p.listener.Close()
	p.change(func() { p.closed = true })
	p.Reset()
	p.wg.Wait()
}

func (p *Proxy) change(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
	close(p.changed)
	p.changed = make(chan struct{})
}

// breakLink ends a connection; p.mu is held.
func (p *Proxy) breakLink(l *link) {
	if !l.broken {
		l.broken = true
		p.counts.Broken++
		reset(l.client)
		reset(l.server)
	}
}

func (p *Proxy) accept() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.wg.Go(func() { p.serve(c) })
	}
}

func (p *Proxy) serve(client net.Conn) {
	if p.refusing() {
		reset(client)
		return
	}
	server, err := p.dial(context.Background(), "tcp", p.target)
	if err != nil {
		reset(client) // as the server would
		return
	}
	l := &link{proxy: p, client: client, server: server}
	if !p.enlist(l) {
		reset(client)
		reset(server)
		return
	}
	var pumps sync.WaitGroup
	pumps.Go(func() { l.pump(client, server, ToServer) })
	pumps.Go(func() { l.pump(server, client, ToClient) })
	pumps.Wait()
	_ = client.Close()
	_ = server.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
}

func (p *Proxy) refusing() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refuse || p.closed
}

func (p *Proxy) enlist(l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.counts.Links++
	p.links[l] = true
	return true
}

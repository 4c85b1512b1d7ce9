package fault

import (
	"net"
	"time"
)

// link is one connection through a Proxy. Its fields are guarded by the proxy.
type link struct {
	proxy          *Proxy
	client, server net.Conn
	lossy          bool // bytes of it have been dropped
	losing         bool // the next answer is
	broken         bool
}

// verdict is what becomes of a piece.
type verdict int

const (
	pass verdict = iota
	drop
	end // the piece and the link
)

// pump moves what comes from src to dst, as the proxy allows.
func (l *link) pump(src, dst net.Conn, w Way) {
	buf := make([]byte, 16<<10)
	for {
		n, err := src.Read(buf)
		if n > 0 {
			switch l.judge(w) {
			case end:
				return
			case pass:
				if _, werr := dst.Write(buf[:n]); werr != nil {
					l.hangUp(w)
					return
				}
			}
		}
		if err != nil {
			l.hangUp(w)
			return
		}
	}
}

// hangUp passes an end on. A client that has gone is one that says no more: the
// server finishes what it was told. When the server has gone, all is over.
func (l *link) hangUp(w Way) {
	if l.judge(w) != pass {
		return // the other side hears nothing of it
	}
	if half, ok := l.server.(interface{ CloseWrite() error }); ok && w == ToServer {
		_ = half.CloseWrite()
		return
	}
	_ = l.server.Close()
	_ = l.client.Close()
}

// judge waits while bytes are held in this direction, and says what becomes of
// the piece.
func (l *link) judge(w Way) verdict {
	p := l.proxy
	p.mu.Lock()
	defer p.mu.Unlock()
	if slow := p.slow; slow > 0 {
		p.mu.Unlock()
		time.Sleep(slow)
		p.mu.Lock()
	}
	for p.held&w != 0 && !l.broken && !p.closed {
		changed := p.changed
		p.mu.Unlock()
		<-changed
		p.mu.Lock()
	}
	switch {
	case l.broken || p.closed:
		return end
	case p.cut&w != 0:
		l.lossy = true
		p.counts.Cut++
		return drop
	case w == ToServer && p.lose > 0 && p.dice.Chance(p.lose):
		l.losing = true
	case w == ToClient && l.losing:
		p.counts.Lost++
		p.breakLink(l)
		return end
	}
	return pass
}

// reset ends a connection with RST where it can: the peer sees an error, and
// not an orderly end.
func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

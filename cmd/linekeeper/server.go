package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/linekeeper/linekeeper/admin"
	"github.com/linekeeper/linekeeper/api"
	"github.com/linekeeper/linekeeper/api/problem"
	"github.com/linekeeper/linekeeper/credential"
	"github.com/linekeeper/linekeeper/draw/closing"
	"github.com/linekeeper/linekeeper/internal/breaker"
	"github.com/linekeeper/linekeeper/internal/clientip"
	"github.com/linekeeper/linekeeper/internal/config"
	"github.com/linekeeper/linekeeper/internal/telemetry"
	"github.com/linekeeper/linekeeper/order"
	orderstore "github.com/linekeeper/linekeeper/order/pgstore"
	"github.com/linekeeper/linekeeper/outbox"
	"github.com/linekeeper/linekeeper/queue/redisstore"
	roomstore "github.com/linekeeper/linekeeper/room/pgstore"
	"github.com/linekeeper/linekeeper/scheduler"
)

// booksConns is how many connections rooms, the relay and operators share. They
// have a pool of their own, so that a flood of orders can't stop admission.
const booksConns = 6

// server is one process of Linekeeper, wired.
type server struct {
	conf    config.Process
	log     *slog.Logger
	metrics *telemetry.Metrics
	moves   *telemetry.Transitions
	ring    *credential.Ring
	tokens  *admin.Tokens
	others  verifiers // of tokens that others issue

	rdb   redis.UniversalClient
	locks redis.UniversalClient // of the scheduler's lock alone: short timeouts, no retries
	money *pgxpool.Pool         // orders
	books *pgxpool.Pool         // all else

	line   *redisstore.Store
	rooms  *roomstore.Store
	orders *orderstore.Store
	relay  *outbox.Relay
	ready  *readiness
	index  http.Handler // GET / of the public listener; nil: not found
}

// newServer connects to Redis, through hooks, and to Postgres, and checks that
// they will keep what they acknowledge. The caller closes it.
func newServer(ctx context.Context, conf config.Process, log *slog.Logger, hooks ...redis.Hook) (*server, error) {
	ring := &credential.Ring{}
	var err error
	if conf.Roles.Has(config.RoleAPI) {
		if ring, err = credential.ParseRing(conf.Keys.Reveal()); err != nil {
			return nil, err
		}
	}
	tokens, err := admin.ParseTokens(conf.AdminTokens.Reveal())
	if err != nil {
		return nil, err
	}
	others, err := newVerifiers(conf, log)
	if err != nil {
		return nil, err
	}
	s := &server{
		conf: conf, log: log, ring: ring, tokens: tokens, others: others,
		metrics: telemetry.New(version()), moves: telemetry.NewTransitions(log, conf.LogTransitions),
	}
	if err := s.connect(ctx); err != nil {
		s.close()
		return nil, err
	}
	for _, h := range hooks {
		s.rdb.AddHook(h)
	}
	if err := s.checkParts(ctx); err != nil {
		s.close()
		return nil, err
	}
	s.assemble()
	return s, nil
}

func (s *server) connect(ctx context.Context) error {
	o, err := config.RedisOptions(s.conf.RedisURL)
	if err != nil {
		return err
	}
	l, err := config.LockOptions(s.conf.RedisURL, s.conf.LeaderTTL)
	if err != nil {
		return err
	}
	s.rdb, s.locks = config.OpenRedis(o), config.OpenRedis(l)
	breaker.Guard(s.rdb, s.breakerChanged)
	if s.money, err = orderstore.NewPool(ctx, s.conf.DatabaseURL.Reveal()); err != nil {
		return err
	}
	c := s.money.Config()
	c.MaxConns = booksConns
	s.books, err = pgxpool.NewWithConfig(ctx, c)
	return err
}

func (s *server) assemble() {
	s.line = redisstore.New(s.rdb, s.conf.KeyPrefix, redisstore.WithObserver(s.metrics.ObserveScript))
	s.rooms = roomstore.New(s.books)
	s.relay = outbox.NewRelay(s.books, sink{s.line}, outbox.Options{
		Log:      s.log,
		Observer: outbox.Observer{Delivered: s.metrics.Delivered, Failed: s.metrics.DeliveryFailed},
	})
	s.orders = orderstore.New(s.money, orderstore.Options{Committed: s.relay.Poke})
	s.ready = &readiness{}
	for name, p := range map[string]*pgxpool.Pool{"orders": s.money, "books": s.books} {
		if err := s.metrics.WatchPostgres(name, p); err != nil {
			s.log.Error("pool not measured", "err", err)
		}
	}
	if err := s.metrics.WatchRedis("main", s.rdb); err != nil {
		s.log.Error("pool not measured", "err", err)
	}
}

func (s *server) close() {
	for _, c := range []redis.UniversalClient{s.rdb, s.locks} {
		if c != nil {
			_ = c.Close()
		}
	}
	for _, p := range []*pgxpool.Pool{s.money, s.books} {
		if p != nil {
			p.Close()
		}
	}
}

// run serves until ctx ends, then stops in reverse: no longer ready, and no
// longer leading, at once; new connections until the delay is over; then all
// answers are given, the outbox batch in hand is finished and the last
// heartbeats are written.
func (s *server) run(ctx context.Context, listening func(public, operators net.Addr)) error {
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	g, work := errgroup.WithContext(work)
	leading, stepDown := context.WithCancel(work)
	defer stepDown()

	servers, err := s.listen(g, work)
	if err != nil {
		stop()
		return errors.Join(err, g.Wait())
	}
	s.background(g, work, leading)
	if listening != nil {
		listening(servers.public.addr, servers.operators.addr)
	}
	s.log.Info("serving", "public", servers.public.addr.String(), "admin", servers.operators.addr.String(),
		"roles", s.conf.Roles.String(), "version", version())

	select {
	case <-ctx.Done():
		s.log.Info("stopping")
		s.ready.drain()
		stepDown()
		sleep(work, s.conf.ShutdownDelay)
	case <-work.Done():
	}
	servers.shutdown(min(s.conf.ShutdownDelay/10, reading))
	stop()
	return g.Wait()
}

// background starts all that runs beside the listeners. What leads ends when
// leading does.
func (s *server) background(g *errgroup.Group, work, leading context.Context) {
	g.Go(func() error { return s.ready.run(work, s.line.Probe, s.writable) })
	if s.conf.Roles.Has(config.RoleAPI) { // the others have no keys
		g.Go(func() error { return newKeyring(s.ring, s.conf, s.log).run(work) })
	}
	s.others.run(work, g)
	if s.conf.Roles.Has(config.RoleRelay) {
		g.Go(func() error { return s.relay.Run(work) })
	}
	if s.conf.Roles.Has(config.RoleScheduler) {
		leads := &leadership{}
		g.Go(func() error { return s.scheduler(leads).Run(leading) })
		g.Go(func() error { return s.gauges(leading, leads) })
	}
}

func (s *server) scheduler(leads *leadership) *scheduler.Scheduler {
	var lock scheduler.Lock
	if s.conf.LeaderTTL > 0 {
		lock = scheduler.NewLock(s.conf.KeyPrefix+":leader", s.conf.LeaderTTL, goredis.NewPool(s.locks))
	}
	return scheduler.New(scheduler.Config{
		Line: s.line, Batches: s.line, Rooms: s.line, Books: s.rooms, Admissions: s.rooms, Terms: s.line.Terms(),
		Draws: closing.Closer{Line: s.line, Books: s.rooms},
		Lock:  lock, TTL: s.conf.LeaderTTL, Leader: credential.NewMember(), NewGrant: credential.NewGrantID,
		Log: s.log, Observer: s.schedulerObserver(leads),
	})
}

func (s *server) publicHandler() (*api.API, http.Handler) {
	a := api.New(api.Options{
		Line: s.line, Returns: s.line, Snapshots: s.line, Hearer: s.line, Health: s.line, Books: s.rooms, KeptOut: s.rooms, Draws: s.rooms,
		Reach: s.line, Codes: s.rooms,
		Orders: order.New(s.line, s.orders, order.Options{Log: s.log, Began: s.metrics.OrderBegan,
			Ended: func(r order.Result, d time.Duration) { s.metrics.OrderEnded(string(r), d) }}),
		OrderBook: s.orders, Ring: s.ring, Log: s.log, Observer: s.apiObserver(), Ready: s.missing,
		Users: s.others.forMembers(), MemberHeader: s.conf.Identity == config.IdentityHeader, Trusted: clientip.Trusted(s.conf.TrustedProxies),
		Challenges: challenges(s.conf.Challenge), CookieSecure: s.conf.CookieSecure, Origins: s.conf.CORSOrigins,
		Limits:     s.limits(),
		Middleware: append(s.middleware(), breaker.Requests), // operators see for themselves
	})
	return a, a.Handler()
}

func (s *server) operatorsHandler() http.Handler {
	return admin.New(admin.Options{
		Store: s.rooms, Lines: s.line, Outbox: outboxAdmin{outbox.NewAdmin(s.books)},
		Tokens: s.tokens, Operators: s.others.forOperators(), Log: s.log, Metrics: s.metrics.Handler(), Use: s.middleware(),
		Trusted: clientip.Trusted(s.conf.TrustedProxies), HashMember: telemetry.HashMember,
		Failed: s.metrics.OperatorUnknown, Evicted: s.evicted,
	})
}

// missing lists what keeps the API from being ready.
func (s *server) missing() []string { return append(s.ready.missing(), s.others.missing()...) }

// listener is an http.Server on a port it holds.
type listener struct {
	*http.Server
	accepting net.Listener
	addr      net.Addr
}

type listeners struct{ public, operators listener }

func (s *server) listen(g *errgroup.Group, work context.Context) (listeners, error) {
	var out listeners
	public := problem.RequestIDs(http.HandlerFunc(s.healthOnly))
	if s.conf.Roles.Has(config.RoleAPI) {
		a, h := s.publicHandler()
		public = s.withIndex(h)
		g.Go(func() error { return a.Run(work) })
	}
	var errs [2]error
	out.public, errs[0] = open(g, "LINEKEEPER_LISTEN", s.conf.Listen, s.ready.parting(public))
	out.operators, errs[1] = open(g, "LINEKEEPER_ADMIN_LISTEN", s.conf.AdminListen, s.operatorsHandler())
	if err := errors.Join(errs[:]...); err != nil {
		out.shutdown(0)
		return listeners{}, err
	}
	return out, nil
}

// open listens. A client that sends or reads slowly holds one connection, for
// a bounded time, and nothing else.
func open(g *errgroup.Group, setting, addr string, h http.Handler) (listener, error) {
	l, err := net.Listen("tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return listener{}, fmt.Errorf("%s: %s is in use by another program; set %s to another address", setting, addr, setting)
	}
	if err != nil {
		return listener{}, fmt.Errorf("%s: %w", setting, err)
	}
	srv := &http.Server{
		Handler: h, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: 30 * time.Second, IdleTimeout: 60 * time.Second, MaxHeaderBytes: 16 << 10,
	}
	g.Go(func() error {
		if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			return fmt.Errorf("%s: %w", setting, err)
		}
		return nil
	})
	return listener{srv, l, l.Addr()}, nil
}

// reading is the time in which the request of a connection just accepted is read.
const reading = 500 * time.Millisecond

// shutdown takes no new connections, and waits until every request in hand has
// its answer. http.Server's own Shutdown hangs up on a first request that it has
// not read yet; so what has been accepted is given time to be read before.
func (l listeners) shutdown(read time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	both := []listener{l.public, l.operators}
	for _, s := range both {
		if s.accepting != nil {
			_ = s.accepting.Close()
		}
	}
	sleep(ctx, read)
	for _, s := range both {
		if s.Server != nil {
			_ = s.Shutdown(ctx)
		}
	}
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

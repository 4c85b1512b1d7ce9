//go:build faults

package verify

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/credential"
	"github.com/linekeeper/linekeeper/internal/devstack"
	"github.com/linekeeper/linekeeper/migrations"
	"github.com/linekeeper/linekeeper/room"
	roomstore "github.com/linekeeper/linekeeper/room/pgstore"
	"github.com/linekeeper/linekeeper/test/fault"
	"github.com/linekeeper/linekeeper/test/harness"
	"github.com/linekeeper/linekeeper/test/history"
)

// The goods that are sold in a fleet's room. Orders take some of both, so that
// they can meet in a deadlock.
var goods = []string{"ale", "bun"}

const stockOfGoods = 1_000_000

// fleet is one deployment to be broken: three processes of the product, each
// behind networks of its own, on one Redis and one Postgres that nobody shares.
type fleet struct {
	t    *testing.T
	seed uint64
	dice *fault.Dice
	plan fleetPlan

	clock     *fault.Clock // of Redis
	redis     *fault.Redis
	db        *fault.Database
	pool      *pgxpool.Pool // past the networks, as all below
	operators *roomstore.Store
	ring      *credential.Ring
	keys      string
	binary    string

	stations  []*station
	events    *history.Recorder
	collector *history.Collector

	mu    sync.Mutex
	facts history.Facts
	log   []string
}

// fleetRoom is the room's name in every fleet, fleetPrefix that of its keys.
const (
	fleetRoom   = "sale"
	fleetPrefix = "fleet"
)

// newFleet starts the servers and makes the room. Nothing serves yet.
func newFleet(t *testing.T, seed uint64) *fleet {
	t.Helper()
	return newPlannedFleet(t, seed, func(*fleetPlan) {})
}

// newPlannedFleet is newFleet with another plan than the seed's.
func newPlannedFleet(t *testing.T, seed uint64, change func(*fleetPlan)) *fleet {
	t.Helper()
	f := &fleet{t: t, seed: seed, dice: fault.NewDice(seed), events: history.NewRecorder(), keys: credential.GenerateKey()}
	f.plan = newFleetPlan(f.dice.Of("plan"))
	change(&f.plan)
	f.binary = productUnderTest(t)
	f.startServers()
	var err error
	f.ring, err = credential.ParseRing(f.keys)
	require.NoError(t, err)
	f.furnish()
	f.collector = history.NewCollector(f.redis.Client(), fleetPrefix, fleetRoom)
	for i := range 3 {
		f.stations = append(f.stations, newStation(f, i))
	}
	return f
}

func (f *fleet) startServers() {
	t := f.t
	var err error
	f.clock, err = fault.NewClock(t.TempDir())
	if errors.Is(err, fault.ErrNoPreload) && os.Getenv("CI") == "" {
		t.Skip(harness.MissingPart + err.Error())
	}
	require.NoError(t, err)
	t.Cleanup(f.clock.Close)
	args := []string{"--appendonly", "no"}
	if f.plan.appendOnly {
		args = []string{"--appendonly", "yes", "--appendfsync", "everysec", "--auto-aof-rewrite-percentage", "0"}
	}
	r, err := devstack.StartRedis(t.Context(), devstack.Options{Args: args, Env: f.clock.Env()})
	require.NoError(t, err)
	t.Cleanup(r.Close)
	f.redis = fault.NewRedis(r)
	t.Cleanup(f.redis.Close)

	p := harness.PostgresServer(t)
	require.NoError(t, p.CreateDatabase(t.Context(), "shop"))
	f.db = fault.NewDatabase(p, "shop")
	_, err = migrations.Up(t.Context(), f.db.DSN())
	require.NoError(t, err)
	f.pool, err = pgxpool.New(t.Context(), f.db.DSN())
	require.NoError(t, err)
	t.Cleanup(f.pool.Close)
}

func (f *fleet) furnish() {
	ctx, by := f.t.Context(), room.Actor{Name: "operator"}
	f.operators = roomstore.New(f.pool)
	_, err := f.operators.Create(ctx, fleetRoom, f.plan.settings, by)
	require.NoError(f.t, err)
	f.facts.Stock = map[string]int64{}
	for _, sku := range goods {
		_, _, err := f.operators.PutProduct(ctx, room.Product{SKU: sku, Stock: stockOfGoods, PriceCents: 100, Currency: "EUR"}, 0, by)
		require.NoError(f.t, err)
		f.facts.Stock[sku] = stockOfGoods
	}
	f.facts.OneOrder = f.plan.settings.OneOrderPerMember
}

// set changes the room's settings. It is tried again for a while: Postgres may
// just be coming back.
func (f *fleet) set(ctx context.Context, change func(*room.Settings)) error {
	err := f.setOnce(ctx, change)
	for until := time.Now().Add(10 * time.Second); err != nil && time.Now().Before(until); {
		pause(ctx, 100*time.Millisecond)
		err = f.setOnce(ctx, change)
	}
	return err
}

func (f *fleet) setOnce(ctx context.Context, change func(*room.Settings)) error {
	r, err := f.operators.Get(ctx, fleetRoom)
	if err != nil {
		return err
	}
	_, err = f.operators.Update(ctx, fleetRoom, r.Version, func(s room.Settings) (room.Settings, error) {
		change(&s)
		return s, nil
	}, room.Actor{Name: "operator"})
	return err
}

// note keeps what was done, for whoever has to understand a failure.
func (f *fleet) note(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.log = append(f.log, time.Now().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
}

// lose has the checker know of data that are lost, or may be, from now until the
// function that it returns is called.
func (f *fleet) lose(kind history.LossKind) (over func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := len(f.facts.Losses)
	f.facts.Losses = append(f.facts.Losses, history.Loss{Kind: kind, Mono: history.Now()})
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.facts.Losses[i].MonoEnd = history.Now()
	}
}

// stepClock moves the clock of Redis.
func (f *fleet) stepClock(by time.Duration) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if by < -time.Minute {
		f.facts.TimeSteps++
	}
	return f.clock.Step(by)
}

// built is the product with the overlay, built once per test binary where
// nobody has said where it is.
var built struct {
	once sync.Once
	path string
	err  error
}

func productUnderTest(t *testing.T) string {
	t.Helper()
	if path := os.Getenv(envBinary); path != "" {
		return path
	}
	built.once.Do(func() {
		root := filepath.Join("..", "..")
		built.path, built.err = filepath.Abs(filepath.Join(root, "bin", "verify", "linekeeper"))
		overlay := filepath.Join("bin", ".overlay")
		for _, args := range [][]string{
			{"run", "./test/fault/overlay", "-dir", overlay},
			{"build", "-buildvcs=false", "-tags", "faults", "-overlay", filepath.Join(overlay, "overlay.json"), "-o", built.path, "./cmd/linekeeper"},
		} {
			cmd := exec.Command("go", args...)
			cmd.Dir = root
			if out, err := cmd.CombinedOutput(); err != nil && built.err == nil {
				built.err = fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out)
			}
		}
	})
	require.NoError(t, built.err)
	return built.path
}

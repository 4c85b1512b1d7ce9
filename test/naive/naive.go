// Package naive is a waiting line as one builds it first: single Redis commands
// that the application puts together. It is here to be compared with.
//
//	enter   ZSCORE, then ZADD with the application's clock in milliseconds
//	poll    GET token, ZRANK, ZCARD
//	tick    ZPOPMIN a batch, then SET a token with a TTL for each
//	order   GET token and compare, transaction, DEL token after COMMIT
//
// It promises to be a fair opponent: run by one process, with nothing going
// wrong in between, it works. Each test of the package plays one scenario
// against it and against Linekeeper, and demands that the fault shows here and
// not there; so every scenario is proved able to fail.
//
// It has no hooks of its own for that: tests interrupt it where any client can
// be interrupted, between two commands. Nothing else imports it.
package naive

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"
)

const (
	// Batch is how many a tick lets through; one tick a second is meant to run.
	Batch = 50
	// TokenTTL is how long a token is good.
	TokenTTL = 300 * time.Second
)

// ErrUnauthorized means that the token is missing, over, or another one.
var ErrUnauthorized = errors.New("naive: no such entry token")

// Line is one waiting line. It is used by any number of processes, which is
// what it was not made for.
type Line struct {
	rdb    redis.UniversalClient
	prefix string
	now    func() time.Time
}

// New returns a line on rdb whose process has the clock now.
func New(rdb redis.UniversalClient, prefix string, now func() time.Time) *Line {
	return &Line{rdb: rdb, prefix: prefix, now: now}
}

func (l *Line) waiting() string            { return l.prefix + ":waiting" }
func (l *Line) token(member string) string { return l.prefix + ":entry-token:" + member }

// Enter adds member at the end, unless they are in line already.
func (l *Line) Enter(ctx context.Context, member string) error {
	score := float64(l.now().UnixMilli())
	err := l.rdb.ZScore(ctx, l.waiting(), member).Err()
	if errors.Is(err, redis.Nil) {
		err = l.rdb.ZAdd(ctx, l.waiting(), redis.Z{Score: score, Member: member}).Err()
	}
	if err != nil {
		return fmt.Errorf("enter %s: %w", member, err)
	}
	return nil
}

// Position is where a member stands.
type Position struct {
	Status        string // WAITING, READY or NOT_ENTERED
	Rank, Total   int64
	EstimatedWait time.Duration
	Token         string
}

// Position looks for a token first: who has one is not in line any more.
func (l *Line) Position(ctx context.Context, member string) (Position, error) {
	token, err := l.rdb.Get(ctx, l.token(member)).Result()
	if err == nil {
		return Position{Status: "READY", Token: token}, nil
	}
	if !errors.Is(err, redis.Nil) {
		return Position{}, fmt.Errorf("token of %s: %w", member, err)
	}
	rank, err := l.rdb.ZRank(ctx, l.waiting(), member).Result()
	if errors.Is(err, redis.Nil) {
		return Position{Status: "NOT_ENTERED"}, nil
	}
	if err != nil {
		return Position{}, fmt.Errorf("rank of %s: %w", member, err)
	}
	total, err := l.rdb.ZCard(ctx, l.waiting()).Result()
	if err != nil {
		return Position{}, fmt.Errorf("size of the line: %w", err)
	}
	// What the schedule is set to, whatever it achieves.
	wait := time.Duration(rank) * time.Second / Batch
	return Position{Status: "WAITING", Rank: rank, Total: total, EstimatedWait: wait}, nil
}

// Tick lets the next batch through and returns it, first come first.
func (l *Line) Tick(ctx context.Context) ([]string, error) {
	popped, err := l.rdb.ZPopMin(ctx, l.waiting(), Batch).Result()
	if err != nil {
		return nil, fmt.Errorf("pop a batch: %w", err)
	}
	members := make([]string, 0, len(popped))
	for _, z := range popped {
		member, _ := z.Member.(string)
		if err := l.rdb.Set(ctx, l.token(member), newToken(), TokenTTL).Err(); err != nil {
			return members, fmt.Errorf("token of %s: %w", member, err)
		}
		members = append(members, member)
	}
	return members, nil
}

func newToken() string {
	var b [32]byte
	rand.Read(b[:])
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// Shop takes orders from those whom its line has let through.
type Shop struct {
	line *Line
	db   *pgxpool.Pool
}

// NewShop returns a shop that keeps orders in db, in a table that Prepare makes.
func NewShop(line *Line, db *pgxpool.Pool) *Shop { return &Shop{line: line, db: db} }

// Prepare makes the table of orders, which the shops of a database share.
func (s *Shop) Prepare(ctx context.Context) error {
	_, err := s.db.Exec(ctx, "CREATE TABLE IF NOT EXISTS naive_orders (line text NOT NULL, member text NOT NULL)")
	return err
}

// Orders is how many orders there are.
func (s *Shop) Orders(ctx context.Context) (n int, err error) {
	err = s.db.QueryRow(ctx, "SELECT count(*) FROM naive_orders WHERE line = $1", s.line.prefix).Scan(&n)
	return n, err
}

// Order places one order of one piece. The token goes after COMMIT, so that an
// order that fails leaves it.
func (s *Shop) Order(ctx context.Context, member, token, sku string) error {
	stored, err := s.line.rdb.Get(ctx, s.line.token(member)).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return fmt.Errorf("token of %s: %w", member, err) // no Redis, no order
	}
	if err != nil || subtle.ConstantTimeCompare([]byte(stored), []byte(token)) != 1 {
		return ErrUnauthorized
	}
	err = pgx.BeginFunc(ctx, s.db, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, "UPDATE products SET stock = stock - 1 WHERE sku = $1 AND stock > 0", sku)
		if err == nil && tag.RowsAffected() == 0 {
			err = errors.New("sold out")
		}
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, "INSERT INTO naive_orders (line, member) VALUES ($1, $2)", s.line.prefix, member)
		return err
	})
	if err != nil {
		return fmt.Errorf("order of %s: %w", member, err)
	}
	// A failed clean-up must not undo what is committed: the TTL is left.
	_ = s.line.rdb.Del(ctx, s.line.token(member)).Err()
	return nil
}

// Package config is the settings of one process: where it listens, what it
// connects to, which roles it plays.
//
// One struct is the source of the flags, the environment variables, the keys of
// the YAML file and the help. A value is taken from the first place that has it:
//
//	flag > LINEKEEPER_X > file named by LINEKEEPER_X_FILE > YAML file > default
//
// The package promises that every problem is reported at once, each with the
// place that the bad value came from, and that no secret shows in an error, a
// log line, or any way of printing the settings.
//
// It does not hold the settings of rooms (package room keeps them, in
// Postgres), does not parse keys or admin tokens (package credential does), and
// does not connect to anything.
package config

import (
	"log/slog"
	"time"
)

// Database is where Postgres is.
type Database struct {
	DatabaseURL URL `env:"LINEKEEPER_DATABASE_URL" placeholder:"URL" help:"Postgres, as postgres://user:password@host:port/database."`
}

// Redis is where Redis is, and what belongs to Linekeeper in it.
type Redis struct {
	RedisURL      URL    `env:"LINEKEEPER_REDIS_URL" placeholder:"URL" help:"Redis: redis://, rediss:// for TLS, or redis-sentinel://host:port,host:port/master/db (rediss-sentinel:// for TLS). Several redis URLs, comma-separated, are the nodes of a Cluster."`
	KeyPrefix     string `env:"LINEKEEPER_KEY_PREFIX" default:"linekeeper" help:"What every key in Redis begins with."`
	AllowEviction bool   `env:"LINEKEEPER_ALLOW_EVICTION" default:"false" negatable:"" help:"Start although Redis may evict keys, and so lose places."`
}

// Log is what the process says about itself.
type Log struct {
	LogLevel       slog.Level `env:"LINEKEEPER_LOG_LEVEL" default:"info" help:"Least level that is logged: debug, info, warn or error."`
	LogTransitions bool       `env:"LINEKEEPER_LOG_TRANSITIONS" default:"false" negatable:"" help:"Log one line for every change of a member's state; members are hashed."`
}

// Challenge is the outside service that rooms with outsideChallenge ask of newcomers.
type Challenge struct {
	ChallengeURL      URL    `env:"LINEKEEPER_CHALLENGE_URL" placeholder:"URL" help:"Where a service of the siteverify kind (Turnstile, hCaptcha) judges challenges of rooms with outsideChallenge: https, or http on this machine. Empty: those rooms take nobody new."`
	ChallengeSecret   Secret `env:"LINEKEEPER_CHALLENGE_SECRET" placeholder:"SECRET" help:"The secret that this service has given you. Not taken from the command line."`
	ChallengeHostname string `env:"LINEKEEPER_CHALLENGE_HOSTNAME" placeholder:"NAME" help:"The host of the page on which a challenge must have been passed; empty: any."`
	ChallengeAction   string `env:"LINEKEEPER_CHALLENGE_ACTION" placeholder:"NAME" help:"The action that a challenge must have been passed for; empty: any."`
	ChallengePrivate  bool   `env:"LINEKEEPER_CHALLENGE_PRIVATE" default:"false" negatable:"" help:"Let the name in LINEKEEPER_CHALLENGE_URL stand for an address that is not public."`
}

// Process is every setting of a serving process. Commands embed it, or only
// the parts they need. The zero value is not usable: Parse fills it.
type Process struct {
	Redis
	Database
	Log
	Challenge
	Limits

	Listen         string   `env:"LINEKEEPER_LISTEN" default:":8080" help:"Address of the public API."`
	AdminListen    string   `env:"LINEKEEPER_ADMIN_LISTEN" default:"127.0.0.1:8081" help:"Address of the operators' API and of /metrics. Beyond loopback it needs admin tokens or an OpenID provider."`
	Roles          Roles    `env:"LINEKEEPER_ROLES" default:"api,scheduler,relay" help:"What this process does, comma-separated: api, scheduler, relay."`
	Keys           Secret   `env:"LINEKEEPER_KEYS" placeholder:"SECRET" help:"Signing keys, kid:base64[,kid:base64]: the first signs, all verify. Not taken from the command line."`
	AdminTokens    Secret   `env:"LINEKEEPER_ADMIN_TOKENS" placeholder:"SECRET" help:"Admin tokens, name:role:sha256hex,...; roles viewer, operator, admin. Not taken from the command line."`
	Identity       Identity `env:"LINEKEEPER_IDENTITY" default:"ticket" help:"Who a member is: ticket (anonymous, by a signed ticket), header (X-Member-Id from a trusted proxy) or jwt (the application's own user tokens)."`
	TrustedProxies Prefixes `env:"LINEKEEPER_TRUSTED_PROXIES" placeholder:"CIDR,..." help:"Networks of the proxies whose X-Member-Id and X-Forwarded-For are believed."`
	UserTokens
	OperatorTokens
	LeaderTTL     time.Duration `env:"LINEKEEPER_LEADER_TTL" default:"5s" help:"How long the scheduler's lock outlives its holder, 2s to 60s; 0 runs without a lock."`
	CookieSecure  bool          `env:"LINEKEEPER_COOKIE_SECURE" default:"true" negatable:"" help:"Set cookies for https only."`
	CORSOrigins   Origins       `env:"LINEKEEPER_CORS_ORIGINS" placeholder:"ORIGIN,..." help:"Origins whose pages may call the public API from a browser, as https://shop.example; none: no other origin."`
	ShutdownDelay time.Duration `env:"LINEKEEPER_SHUTDOWN_DELAY" default:"5s" help:"How long to go on serving, no longer ready, before stopping."`
}

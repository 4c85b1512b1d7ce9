-- +goose Up

-- One life of a room's data in Redis. Never used twice, over all rooms.
CREATE SEQUENCE generations;

CREATE TABLE rooms (
    name            text PRIMARY KEY CHECK (name ~ '^[a-z0-9][a-z0-9_-]{0,63}$'),
    settings        jsonb NOT NULL,
    version         bigint NOT NULL DEFAULT 1,
    sale            bigint NOT NULL DEFAULT 1,
    -- 0 until a scheduler begins the room. A flush sets a new one.
    generation      bigint NOT NULL DEFAULT 0,
    -- The oldest generation whose tickets can be restored. NULL: the next one that
    -- begins, because no earlier one exists or a flush lies between.
    restorable_from bigint,
    created_at      timestamptz NOT NULL DEFAULT now(),
    updated_at      timestamptz NOT NULL DEFAULT now(),
    -- Deleted rooms stay, so that a name never meets its own old orders in sale 1.
    deleted_at      timestamptz,
    -- When the data of a deleted room were removed from Redis.
    dropped_at      timestamptz
);

-- What must survive a loss of Redis data. Written before any grant is issued.
CREATE TABLE room_progress (
    room       text PRIMARY KEY REFERENCES rooms (name),
    floors     bigint[] NOT NULL DEFAULT '{0,0,0,0}', -- per lane, the highest score ever admitted
    last_score bigint NOT NULL DEFAULT 0,
    written_at timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 50); -- rewritten every second: leave room for updates in place

-- Every change by an operator: who, from where, what before and after.
CREATE TABLE room_changes (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at         timestamptz NOT NULL DEFAULT now(),
    actor      text NOT NULL,
    role       text NOT NULL,
    remote     text NOT NULL,
    action     text NOT NULL, -- room.create, room.update, room.pause, room.flush, product.put, ...
    target     text NOT NULL, -- the room's name or the product's sku
    version    bigint,        -- of the settings after it
    before     jsonb,
    after      jsonb,
    request_id text NOT NULL DEFAULT ''
);
CREATE INDEX room_changes_target ON room_changes (target, id); -- the audit list of one room

-- Members who may not go on: blocked for good, or evicted from one sale.
CREATE TABLE room_exclusions (
    room   text NOT NULL REFERENCES rooms (name),
    member text NOT NULL,
    kind   text NOT NULL CHECK (kind IN ('blocked', 'evicted')),
    sale   bigint NOT NULL DEFAULT 0, -- 0: every sale
    at     timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (room, member, kind, sale)
);

CREATE TABLE products (
    sku         text PRIMARY KEY CHECK (sku ~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$'),
    stock       bigint NOT NULL CHECK (stock >= 0),
    price_cents bigint NOT NULL CHECK (price_cents >= 0),
    currency    text NOT NULL CHECK (currency ~ '^[A-Z]{3}$'),
    version     bigint NOT NULL DEFAULT 1,
    updated_at  timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 50); -- a hot product's stock changes with each order

CREATE TABLE orders (
    id              uuid PRIMARY KEY,
    -- Decides that a grant pays for one order at most, whatever Redis has lost.
    grant_id        uuid NOT NULL CONSTRAINT orders_grant UNIQUE,
    -- A void row says that there is no order for this grant and never will be.
    void            boolean NOT NULL DEFAULT false,
    room            text NOT NULL,
    sale            bigint NOT NULL,
    generation      bigint NOT NULL,
    member          text NOT NULL,
    once            boolean NOT NULL DEFAULT false, -- the room allowed one order per member
    fingerprint     bytea NOT NULL DEFAULT '',
    idempotency_key text,
    items           jsonb NOT NULL DEFAULT '[]',
    total_cents     bigint NOT NULL DEFAULT 0,
    currency        text NOT NULL DEFAULT '',
    created_at      timestamptz NOT NULL DEFAULT now()
);
-- One order per member and sale, where the room said so when the order was placed.
CREATE UNIQUE INDEX orders_once ON orders (room, sale, member) WHERE once AND NOT void;
-- The scope of an Idempotency-Key.
CREATE UNIQUE INDEX orders_idempotency ON orders (room, member, idempotency_key) WHERE idempotency_key IS NOT NULL;

CREATE TABLE outbox (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    order_id        uuid NOT NULL REFERENCES orders (id),
    kind            text NOT NULL,
    room            text NOT NULL,
    payload         jsonb NOT NULL,
    traceparent     text NOT NULL DEFAULT '',
    status          text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'done', 'dead')),
    attempts        int NOT NULL DEFAULT 0, -- deliveries begun; sets the backoff
    faults          int NOT NULL DEFAULT 0, -- deliveries failed by the row's own fault; enough of them make it dead
    next_attempt_at timestamptz NOT NULL DEFAULT now(),
    locked_until    timestamptz,
    owner           text,
    last_error      text NOT NULL DEFAULT '',
    created_at      timestamptz NOT NULL DEFAULT now(),
    done_at         timestamptz,
    CONSTRAINT outbox_once UNIQUE (order_id, kind)
);
-- What the relay looks for; done rows never slow it down.
CREATE INDEX outbox_due ON outbox (next_attempt_at) WHERE status = 'pending';
-- For the list of the dead and their number, which is asked for all the time.
CREATE INDEX outbox_dead ON outbox (id) WHERE status = 'dead';
-- For the deletion of old rows.
CREATE INDEX outbox_done ON outbox (done_at) WHERE status = 'done';

-- +goose Down
DROP TABLE outbox, orders, products, room_exclusions, room_changes, room_progress, rooms;
DROP SEQUENCE generations;

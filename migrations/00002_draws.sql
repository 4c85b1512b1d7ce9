-- +goose Up

-- Floors belong to a sale: scores that a draw gives are below all times, so a
-- floor of an earlier sale would refuse every lost place of a draw.
ALTER TABLE room_progress ADD COLUMN sale bigint NOT NULL DEFAULT 1;
UPDATE room_progress p SET sale = r.sale FROM rooms r WHERE r.name = p.room;

-- The draw or the lottery of a sale, made with the sale and never changed but to
-- be listed, once.
CREATE TABLE draws (
    room       text NOT NULL REFERENCES rooms (name),
    sale       bigint NOT NULL,
    -- Worth every place in the line until the draw is listed: it is shown to nobody
    -- before. (That of a lottery is never shown.)
    seed       text NOT NULL CHECK (seed ~ '^[0-9a-f]{64}$'),
    -- 'uniform' or 'weighted'
    ordering    text NOT NULL CHECK (ordering IN ('uniform', 'weighted')),
    lanes      jsonb NOT NULL, -- [{"name", "weight"}], as they were when the sale began
    made_at    timestamptz NOT NULL DEFAULT now(),
    listed_at  timestamptz,
    entrants   bigint,
    root       bytea,
    pieces     bytea, -- the roots of the pieces, 32 bytes each
    PRIMARY KEY (room, sale),
    CHECK ((listed_at IS NULL) = (root IS NULL) AND (root IS NULL) = (entrants IS NULL) AND (root IS NULL) = (pieces IS NULL))
);

-- The list of entrants, in pieces of 1,024 lines: a million entrants have 125 MB.
CREATE TABLE draw_pieces (
    room  text NOT NULL,
    sale  bigint NOT NULL,
    piece int NOT NULL,   -- from 0
    first bytea NOT NULL, -- the entrant of the first line: who looks for one finds the piece by it
    body  text NOT NULL,
    PRIMARY KEY (room, sale, piece),
    FOREIGN KEY (room, sale) REFERENCES draws (room, sale)
);
CREATE INDEX draw_pieces_first ON draw_pieces (room, sale, first); -- for proofs

-- +goose Down
DROP TABLE draw_pieces, draws;
ALTER TABLE room_progress DROP COLUMN sale;

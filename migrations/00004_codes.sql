-- +goose Up

-- Codes that give a lane, or the right to enter. A code itself is nowhere: it has
-- 80 random bits beyond the ending that is shown, so its hash needs no salt.
CREATE TABLE access_codes (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    room       text NOT NULL REFERENCES rooms (name),
    hash       bytea NOT NULL CHECK (length(hash) = 32),
    ending     text NOT NULL, -- the last characters, for people to tell codes apart
    batch      bigint NOT NULL, -- those made by one call
    lane       text NOT NULL, -- '': that of whoever shows it
    uses       int NOT NULL CHECK (uses > 0), -- members in each sale
    -- The sale of the last use and how many there were in it: one row that all who
    -- use the code wait for, so that the last use is nobody's twice.
    sale       bigint NOT NULL DEFAULT 0,
    used       int NOT NULL DEFAULT 0,
    made_at    timestamptz NOT NULL DEFAULT now(),
    revoked_at timestamptz,
    UNIQUE (room, hash)
);
CREATE INDEX access_codes_batch ON access_codes (room, batch); -- to revoke what was made together
CREATE SEQUENCE access_code_batches;

-- Who has used a code, so that using it again costs nothing.
CREATE TABLE access_code_uses (
    code    bigint NOT NULL REFERENCES access_codes (id),
    sale    bigint NOT NULL,
    member  text NOT NULL,
    used_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (code, sale, member)
);

-- +goose Down
DROP TABLE access_code_uses, access_codes;
DROP SEQUENCE access_code_batches;

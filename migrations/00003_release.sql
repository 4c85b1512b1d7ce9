-- +goose Up

-- How many members operators have let go by hand, over the whole life of the
-- room. It only rises: Redis keeps how many of them have gone.
ALTER TABLE rooms ADD COLUMN released bigint NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE rooms DROP COLUMN released;

-- Guessing: eighteen counters for an account, whatever tokens of devices exist, and what was guessed at.
--
-- The rules of 0001 hold. `failed_attempts` stays distributed by subject: all counters of a userid have one key.

ALTER TABLE saltern.logins
    -- Tokens of devices carry it; moved by a change of the credential and by the end of all other sessions.
    ADD COLUMN device_generation bigint NOT NULL DEFAULT 1 CHECK (device_generation > 0),
    -- Tokens of the generation before count together for a while after it.
    ADD COLUMN device_generation_moved_at timestamptz,
    -- Keyed hash of the verifier that was replaced last, so that the retry of that change is recognised. The key is
    -- derived from the master key: this opens nothing, and is nothing to test guesses against.
    ADD COLUMN previous_key bytea CHECK (octet_length(previous_key) = 32);

-- The change that a restricted session has made and ended with, for the retry after a lost reply.
ALTER TABLE saltern.recoveries
    ADD COLUMN completed_token_hash bytea CHECK (octet_length(completed_token_hash) = 32),
    ADD COLUMN completed_until timestamptz,
    ADD COLUMN completed_revision bigint,
    ADD CHECK (num_nulls(completed_token_hash, completed_until, completed_revision) IN (0, 3));

-- The subject is the keyed hash of a userid, known or not. Its counters: its own (zeros), and the keyed hashes of the
-- places that tokens of devices name.
ALTER TABLE saltern.failed_attempts
    ADD COLUMN counter bytea NOT NULL
        DEFAULT '\x0000000000000000000000000000000000000000000000000000000000000000'
        CHECK (octet_length(counter) = 32),
    -- By kind: wrong password keys, one-time codes, recovery keys, present keys, confirmations of a second factor.
    ADD COLUMN counts integer[],
    -- The first and the latest failure of each kind.
    ADD COLUMN since timestamptz[],
    ADD COLUMN latest timestamptz[];
UPDATE saltern.failed_attempts
SET counts = ARRAY[failures, 0, 0, 0, 0],
    since = ARRAY[first_failed_at, 'infinity', 'infinity', 'infinity', 'infinity'],
    latest = ARRAY[last_failed_at, '-infinity', '-infinity', '-infinity', '-infinity'];
ALTER TABLE saltern.failed_attempts
    DROP COLUMN failures,
    ALTER COLUMN counter DROP DEFAULT,
    ALTER COLUMN counts SET NOT NULL,
    ALTER COLUMN since SET NOT NULL,
    ALTER COLUMN latest SET NOT NULL,
    ADD CHECK (cardinality(counts) = 5 AND cardinality(since) = 5 AND cardinality(latest) = 5),
    DROP CONSTRAINT failed_attempts_pkey,
    ADD PRIMARY KEY (subject, counter);

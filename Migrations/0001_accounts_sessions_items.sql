-- Accounts, sessions and items.
--
-- Rules that let the same schema run on distributed PostgreSQL: every table that an account owns has a primary key
-- that starts with account_id; nothing is unique across accounts except by the key of `logins`; no foreign keys, no
-- triggers, no sequences. On Citus, `logins` is distributed by userid, the tables with account_id by account_id, and
-- `installation` and `plans` are reference tables.

CREATE SCHEMA IF NOT EXISTS saltern;

-- One row: what belongs to the database rather than to one server.
CREATE TABLE saltern.installation (
    singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
    -- Part of everybody's salt: changing it would lock everybody out.
    salt_prefix text NOT NULL CHECK (octet_length(salt_prefix) BETWEEN 1 AND 255),
    -- Decides which decoy an unknown userid is shown.
    decoy_secret bytea NOT NULL CHECK (octet_length(decoy_secret) = 32),
    -- 256 quantiles of the iteration counts that real accounts have.
    decoy_iterations integer[] NOT NULL CHECK (cardinality(decoy_iterations) = 256),
    decoys_drawn_at timestamptz NOT NULL,
    created_at timestamptz NOT NULL
);

-- Named sets of limits.
CREATE TABLE saltern.plans (
    plan text COLLATE "C" PRIMARY KEY CHECK (plan ~ '^[a-z0-9-]{1,32}$'),
    max_items bigint NOT NULL CHECK (max_items >= 0),
    max_item_bytes bigint NOT NULL CHECK (max_item_bytes >= 0),
    max_bytes bigint NOT NULL CHECK (max_bytes >= 0),
    max_sessions bigint NOT NULL CHECK (max_sessions >= 1),
    max_shares bigint NOT NULL CHECK (max_shares >= 0)
);

INSERT INTO saltern.plans (plan, max_items, max_item_bytes, max_bytes, max_sessions, max_shares)
VALUES ('default', 10000, 1048576, 268435456, 100, 100);

-- What a userid leads to, and the only table that is unique by it.
CREATE TABLE saltern.logins (
    userid text COLLATE "C" PRIMARY KEY CHECK (octet_length(userid) BETWEEN 1 AND 254),
    account_id uuid NOT NULL,
    -- SHA-256 of the password key, never the key.
    verifier bytea NOT NULL CHECK (octet_length(verifier) = 32),
    kdf_iterations integer NOT NULL CHECK (kdf_iterations BETWEEN 1 AND 10000000)
);

-- Room on each page keeps the many small updates of revision and counters on the row's own page (HOT).
CREATE TABLE saltern.accounts (
    account_id uuid PRIMARY KEY,
    userid text COLLATE "C" NOT NULL,
    plan text COLLATE "C" NOT NULL DEFAULT 'default',
    -- The number of the latest change of the account's items.
    revision bigint NOT NULL DEFAULT 0 CHECK (revision >= 0),
    -- Items that are not deleted, and their sealed bytes.
    item_count bigint NOT NULL DEFAULT 0 CHECK (item_count >= 0),
    item_bytes bigint NOT NULL DEFAULT 0 CHECK (item_bytes >= 0),
    keyring bytea CHECK (octet_length(keyring) BETWEEN 1 AND 65536),
    keyring_revision bigint NOT NULL DEFAULT 0 CHECK (keyring_revision >= 0),
    created_at timestamptz NOT NULL,
    locked_at timestamptz
) WITH (fillfactor = 75);
ALTER TABLE saltern.accounts ALTER COLUMN keyring SET STORAGE EXTERNAL;

CREATE TABLE saltern.sessions (
    account_id uuid NOT NULL,
    -- SHA-256 of the token's random part.
    token_hash bytea NOT NULL CHECK (octet_length(token_hash) = 32),
    session_id uuid NOT NULL,
    device_name text CHECK (char_length(device_name) BETWEEN 1 AND 64),
    created_at timestamptz NOT NULL,
    -- Written at most once a minute.
    last_used_at timestamptz NOT NULL,
    -- The end of the absolute lifetime.
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (account_id, token_hash)
) WITH (fillfactor = 85);

-- Live items, and tombstones: rows with `deleted` and without content.
CREATE TABLE saltern.items (
    account_id uuid NOT NULL,
    item_id uuid NOT NULL,
    revision bigint NOT NULL CHECK (revision > 0),
    deleted boolean NOT NULL DEFAULT false,
    collection text COLLATE "C" NOT NULL CHECK (collection ~ '^[a-z0-9-]{1,32}$'),
    format text COLLATE "C" CHECK (octet_length(format) BETWEEN 1 AND 32),
    iterations integer CHECK (iterations > 0),
    title bytea CHECK (octet_length(title) > 0),
    body bytea CHECK (octet_length(body) > 0),
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (account_id, item_id),
    CHECK (deleted = (body IS NULL) AND deleted = (format IS NULL)),
    CHECK (NOT deleted OR (title IS NULL AND iterations IS NULL))
);
-- Ciphertext does not compress.
ALTER TABLE saltern.items ALTER COLUMN title SET STORAGE EXTERNAL;
ALTER TABLE saltern.items ALTER COLUMN body SET STORAGE EXTERNAL;
CREATE INDEX items_by_revision ON saltern.items (account_id, revision);

-- The server's role reads and writes rows and can do nothing else. A login role of the operator's choice is granted
-- it. Two databases of one cluster may get here at once, and an owner without CREATEROLE finds it prepared.
DO $$
BEGIN
    CREATE ROLE saltern_server NOLOGIN;
EXCEPTION
    WHEN duplicate_object OR unique_violation THEN
        NULL;
    WHEN insufficient_privilege THEN
        IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = 'saltern_server') THEN
            RAISE EXCEPTION 'the role saltern_server does not exist and this role may not create it'
                USING HINT = 'As a superuser: CREATE ROLE saltern_server NOLOGIN;', ERRCODE = '42501';
        END IF;
END
$$;

GRANT USAGE ON SCHEMA saltern TO saltern_server;
GRANT SELECT, INSERT ON saltern.installation TO saltern_server;
GRANT UPDATE (decoy_iterations, decoys_drawn_at) ON saltern.installation TO saltern_server;
GRANT SELECT ON saltern.plans TO saltern_server;
GRANT SELECT, INSERT, UPDATE, DELETE
    ON saltern.logins, saltern.accounts, saltern.sessions, saltern.items TO saltern_server;

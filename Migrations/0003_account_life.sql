-- The life of an account: credential changes, rotation, recovery, second factor, invites, throttling, logs.
--
-- The rules of 0001 hold. On Citus, what has account_id is distributed by it, `failed_attempts` by subject, `invites`
-- by code_hash; `audit_log` and `audit_head` are local tables.

-- Moves with every change of the credential, in both rows at once. A log-in that compared an older verifier finds that
-- it has moved and opens nothing.
ALTER TABLE saltern.logins
    ADD COLUMN credential_revision bigint NOT NULL DEFAULT 1 CHECK (credential_revision > 0);
ALTER TABLE saltern.accounts
    ADD COLUMN credential_revision bigint NOT NULL DEFAULT 1 CHECK (credential_revision > 0);

-- A restricted session can do one thing: set a new credential. Recovery opens it.
ALTER TABLE saltern.sessions ADD COLUMN restricted boolean NOT NULL DEFAULT false;

-- The second key, from a printed code, and the keyring that is sealed under it.
CREATE TABLE saltern.recoveries (
    account_id uuid PRIMARY KEY,
    -- SHA-256 of the recovery key, never the key.
    verifier bytea NOT NULL CHECK (octet_length(verifier) = 32),
    keyring bytea CHECK (octet_length(keyring) BETWEEN 1 AND 65536),
    created_at timestamptz NOT NULL,
    last_used_at timestamptz
);
ALTER TABLE saltern.recoveries ALTER COLUMN keyring SET STORAGE EXTERNAL;

-- Time-based one-time passwords (RFC 6238).
CREATE TABLE saltern.second_factors (
    account_id uuid PRIMARY KEY,
    -- Sealed with the master key, which is not in the database.
    sealed_secret bytea NOT NULL CHECK (octet_length(sealed_secret) BETWEEN 1 AND 255),
    created_at timestamptz NOT NULL,
    -- It counts from then on.
    confirmed_at timestamptz,
    -- The time step of the latest code that was accepted: none is accepted twice.
    last_step bigint NOT NULL DEFAULT 0 CHECK (last_step >= 0)
) WITH (fillfactor = 85);

-- Recovery codes of the second factor that were not used yet.
CREATE TABLE saltern.second_factor_codes (
    account_id uuid NOT NULL,
    code_hash bytea NOT NULL CHECK (octet_length(code_hash) = 32),
    PRIMARY KEY (account_id, code_hash)
);

-- Re-encryptions that were begun. A committed one stays for a while, so that a lost reply can be asked for again.
CREATE TABLE saltern.rotations (
    account_id uuid NOT NULL,
    rotation_id uuid NOT NULL,
    opened_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    committed_at timestamptz,
    -- What is staged: items, and their sealed bytes.
    item_count bigint NOT NULL DEFAULT 0 CHECK (item_count >= 0),
    item_bytes bigint NOT NULL DEFAULT 0 CHECK (item_bytes >= 0),
    PRIMARY KEY (account_id, rotation_id)
) WITH (fillfactor = 75);
CREATE INDEX rotations_by_expiry ON saltern.rotations (expires_at);

-- Items that were sealed anew and wait for the commit.
CREATE TABLE saltern.rotation_items (
    account_id uuid NOT NULL,
    rotation_id uuid NOT NULL,
    item_id uuid NOT NULL,
    -- The revision of the item that was sealed anew.
    base_revision bigint NOT NULL CHECK (base_revision > 0),
    format text COLLATE "C" NOT NULL CHECK (octet_length(format) BETWEEN 1 AND 32),
    iterations integer CHECK (iterations > 0),
    title bytea CHECK (octet_length(title) > 0),
    body bytea NOT NULL CHECK (octet_length(body) > 0),
    PRIMARY KEY (account_id, rotation_id, item_id)
);
ALTER TABLE saltern.rotation_items ALTER COLUMN title SET STORAGE EXTERNAL;
ALTER TABLE saltern.rotation_items ALTER COLUMN body SET STORAGE EXTERNAL;

-- A purchase receipt, opaque to the server.
CREATE TABLE saltern.receipts (
    account_id uuid PRIMARY KEY,
    receipt text NOT NULL CHECK (octet_length(receipt) BETWEEN 1 AND 65536),
    updated_at timestamptz NOT NULL
);

-- What happened to an account, for its owner to read. A successful log-in is not here: its session is its record.
CREATE TABLE saltern.security_events (
    account_id uuid NOT NULL,
    occurred_at timestamptz NOT NULL,
    event_id uuid NOT NULL,
    kind text COLLATE "C" NOT NULL CHECK (kind ~ '^[a-z_]{1,40}$'),
    -- The session that did it, or that it was done to.
    session_id uuid,
    device_name text CHECK (char_length(device_name) BETWEEN 1 AND 64),
    -- How many there were, and since when, for what is counted.
    count bigint CHECK (count > 0),
    since timestamptz,
    PRIMARY KEY (account_id, occurred_at, event_id)
);
CREATE INDEX security_events_by_age ON saltern.security_events (occurred_at);

-- Attempts that failed since the last success, for each subject: the keyed hash of a userid (known or not), of a device, of a session.
-- What was typed cannot be read back: people type passwords where names belong.
CREATE TABLE saltern.failed_attempts (
    subject bytea PRIMARY KEY CHECK (octet_length(subject) = 32),
    failures integer NOT NULL CHECK (failures > 0),
    -- Those of them that came without a day's pause: they make the delay.
    streak integer NOT NULL CHECK (streak > 0),
    first_failed_at timestamptz NOT NULL,
    last_failed_at timestamptz NOT NULL,
    -- No attempt is looked at before.
    blocked_until timestamptz NOT NULL
) WITH (fillfactor = 75);
CREATE INDEX failed_attempts_by_age ON saltern.failed_attempts (first_failed_at);

-- Invitations to register.
CREATE TABLE saltern.invites (
    -- SHA-256 of the code.
    code_hash bytea PRIMARY KEY CHECK (octet_length(code_hash) = 32),
    invite_id uuid NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    -- The plan of the account that comes of it; the default plan when null.
    plan text COLLATE "C",
    note text CHECK (char_length(note) BETWEEN 1 AND 200),
    used_at timestamptz,
    revoked_at timestamptz
);
-- The invite that an account came with. Here and not in `invites`, so that it goes with the account.
ALTER TABLE saltern.accounts ADD COLUMN invite_id uuid;

-- Locked accounts are few; no write of an account touches this.
CREATE INDEX accounts_locked ON saltern.accounts (userid) WHERE locked_at IS NOT NULL;

-- What admins did, and which accounts were deleted. Each row carries the hash of the one before.
CREATE TABLE saltern.audit_log (
    sequence bigint PRIMARY KEY CHECK (sequence > 0),
    occurred_at timestamptz NOT NULL,
    actor text NOT NULL CHECK (char_length(actor) BETWEEN 1 AND 128),
    action text COLLATE "C" NOT NULL CHECK (action ~ '^[a-z_]{1,40}$'),
    target_account uuid,
    detail text CHECK (char_length(detail) <= 1000),
    previous_hash bytea NOT NULL CHECK (octet_length(previous_hash) = 32),
    hash bytea NOT NULL CHECK (octet_length(hash) = 32)
);

-- One row: the end of the chain, so that a cut-off tail is noticed too.
CREATE TABLE saltern.audit_head (
    singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
    sequence bigint NOT NULL CHECK (sequence >= 0),
    hash bytea NOT NULL CHECK (octet_length(hash) = 32)
);
INSERT INTO saltern.audit_head (sequence, hash) VALUES (0, decode(repeat('00', 32), 'hex'));

GRANT SELECT, INSERT, UPDATE, DELETE
    ON saltern.recoveries, saltern.second_factors, saltern.second_factor_codes, saltern.rotations,
    saltern.rotation_items, saltern.receipts, saltern.security_events, saltern.failed_attempts
    TO saltern_server;
GRANT SELECT ON saltern.invites TO saltern_server;
GRANT UPDATE (used_at) ON saltern.invites TO saltern_server;
GRANT SELECT, INSERT ON saltern.audit_log TO saltern_server;
GRANT SELECT ON saltern.audit_head TO saltern_server;
GRANT UPDATE (sequence, hash) ON saltern.audit_head TO saltern_server;

-- Passkeys (WebAuthn), and the challenges that were used.
-- compatible with: 8

CREATE TABLE saltern.passkeys (
    account_id uuid NOT NULL,
    credential_id bytea NOT NULL,
    -- The signature algorithm by its number in COSE, and the public key as libfido2 reads it.
    algorithm integer NOT NULL,
    public_key bytea NOT NULL,
    sign_count bigint NOT NULL,
    -- Whether it can be on several devices, and whether it is; the first never changes.
    backup_eligible boolean NOT NULL,
    backed_up boolean NOT NULL,
    name text COLLATE "C" NOT NULL,
    -- Whether it opens sessions without the password key.
    logs_in boolean NOT NULL,
    -- The private half of a key that its PRF output opens, and the unlock key sealed to the public half.
    unlock_key bytea,
    unlock_box bytea,
    created_at timestamptz NOT NULL,
    last_used_at timestamptz,
    PRIMARY KEY (account_id, credential_id)
) WITH (fillfactor = 85);
ALTER TABLE saltern.passkeys ADD CONSTRAINT passkeys_id_check CHECK (octet_length(credential_id) BETWEEN 1 AND 1023);
ALTER TABLE saltern.passkeys ADD CONSTRAINT passkeys_key_check
    CHECK (algorithm IN (-7, -8, -257) AND octet_length(public_key) BETWEEN 32 AND 259);
ALTER TABLE saltern.passkeys ADD CONSTRAINT passkeys_count_check CHECK (sign_count BETWEEN 0 AND 4294967295);
ALTER TABLE saltern.passkeys ADD CONSTRAINT passkeys_backup_check CHECK (backup_eligible OR NOT backed_up);
ALTER TABLE saltern.passkeys ADD CONSTRAINT passkeys_name_check CHECK (octet_length(name) BETWEEN 1 AND 256);
ALTER TABLE saltern.passkeys ADD CONSTRAINT passkeys_unlock_check
    CHECK ((unlock_key IS NULL) = (unlock_box IS NULL) AND (unlock_box IS NULL OR logs_in)
        AND octet_length(unlock_key) <= 1024 AND octet_length(unlock_box) <= 1024);

-- Each is accepted once: it is a row until it has expired.
CREATE TABLE saltern.used_challenges (
    account_id uuid NOT NULL,
    challenge_hash bytea NOT NULL,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (account_id, challenge_hash)
);
ALTER TABLE saltern.used_challenges ADD CONSTRAINT used_challenges_hash_check CHECK (octet_length(challenge_hash) = 32);
CREATE INDEX used_challenges_by_expiry ON saltern.used_challenges (expires_at);

GRANT SELECT, INSERT, UPDATE, DELETE ON saltern.passkeys, saltern.used_challenges TO saltern_server;

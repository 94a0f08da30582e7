-- Keyrings that were replaced, for as long as they can be restored.
-- compatible with: 8

CREATE TABLE saltern.kept_keyrings (
    account_id uuid NOT NULL,
    kept_id uuid NOT NULL,
    -- The account's keyring and what the recovery code opened, as they were together.
    keyring bytea,
    keyring_revision bigint NOT NULL,
    recovery_keyring bytea,
    -- Whether the request that replaced them had the password key.
    proven boolean NOT NULL,
    replaced_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (account_id, kept_id),
    CONSTRAINT kept_keyrings_check CHECK (keyring IS NOT NULL OR recovery_keyring IS NOT NULL)
);
ALTER TABLE saltern.kept_keyrings ALTER COLUMN keyring SET STORAGE EXTERNAL;
ALTER TABLE saltern.kept_keyrings ALTER COLUMN recovery_keyring SET STORAGE EXTERNAL;
CREATE INDEX kept_keyrings_by_expiry ON saltern.kept_keyrings (expires_at);

GRANT SELECT, INSERT, UPDATE, DELETE ON saltern.kept_keyrings TO saltern_server;

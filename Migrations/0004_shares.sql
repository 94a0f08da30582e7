-- Share links.
--
-- On Citus, `shares` is distributed by share_id, `account_shares` by account_id.

-- What a link leads to, and the only table that is unique by the link's id.
CREATE TABLE saltern.shares (
    share_id bytea PRIMARY KEY CHECK (octet_length(share_id) = 16),
    -- Whose it is; null for one that was made without an account.
    owner_account uuid,
    -- SHA-256 of the manage token's random part.
    manage_hash bytea NOT NULL CHECK (octet_length(manage_hash) = 32),
    format text COLLATE "C" NOT NULL CHECK (octet_length(format) BETWEEN 1 AND 32),
    salt bytea NOT NULL CHECK (octet_length(salt) BETWEEN 8 AND 32),
    iterations integer NOT NULL CHECK (iterations BETWEEN 1000 AND 10000000),
    sealed bytea NOT NULL CHECK (octet_length(sealed) > 0),
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    -- From then on the link opens nothing. The last view sets it, so what is used up has expired.
    expires_at timestamptz,
    max_views bigint CHECK (max_views > 0),
    views bigint NOT NULL DEFAULT 0 CHECK (views >= 0),
    -- The owner's account is locked: the link opens nothing for as long.
    suspended boolean NOT NULL DEFAULT false,
    CHECK (max_views IS NULL OR views <= max_views)
) WITH (fillfactor = 75);
ALTER TABLE saltern.shares ALTER COLUMN sealed SET STORAGE EXTERNAL;
CREATE INDEX shares_by_expiry ON saltern.shares (expires_at) WHERE expires_at IS NOT NULL;

-- Which shares an account has: what its plan counts. Those made without an account are here as the nil UUID's, so that
-- they can be counted too.
CREATE TABLE saltern.account_shares (
    account_id uuid NOT NULL,
    share_id bytea NOT NULL CHECK (octet_length(share_id) = 16),
    created_at timestamptz NOT NULL,
    expires_at timestamptz,
    PRIMARY KEY (account_id, share_id)
);

GRANT SELECT, INSERT, UPDATE, DELETE ON saltern.shares, saltern.account_shares TO saltern_server;

-- Older versions of items: contents that another content has replaced, until they expire.
-- compatible with: 8

CREATE TABLE saltern.replaced_contents (
    account_id uuid NOT NULL,
    item_id uuid NOT NULL,
    -- The item's revision while it had this content.
    revision bigint NOT NULL,
    collection text COLLATE "C" NOT NULL,
    format text COLLATE "C" NOT NULL,
    iterations integer,
    title bytea,
    body bytea NOT NULL,
    -- When the item was created, when it got this content, and when the next content replaced it.
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    replaced_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (account_id, item_id, revision)
);
ALTER TABLE saltern.replaced_contents ALTER COLUMN title SET STORAGE EXTERNAL;
ALTER TABLE saltern.replaced_contents ALTER COLUMN body SET STORAGE EXTERNAL;
ALTER TABLE saltern.replaced_contents ALTER COLUMN account_id SET (n_distinct = -0.01);
-- Conditions that hold for every row, as in 0007: only a statement that repeats them can use the index.
CREATE INDEX replaced_contents_by_age ON saltern.replaced_contents (account_id, expires_at, item_id, revision)
    WHERE expires_at > '-infinity';
CREATE INDEX replaced_contents_by_expiry ON saltern.replaced_contents (expires_at) WHERE replaced_at > '-infinity';

-- Rows of replaced_contents, and their sealed bytes. Together with kept_count and kept_bytes they stay within the plan.
ALTER TABLE saltern.accounts
    ADD COLUMN version_count bigint NOT NULL DEFAULT 0,
    ADD COLUMN version_bytes bigint NOT NULL DEFAULT 0;
ALTER TABLE saltern.accounts DROP CONSTRAINT accounts_counters_check;
ALTER TABLE saltern.accounts ADD CONSTRAINT accounts_counters_check
    CHECK (least(item_count, item_bytes, tombstone_count, kept_count, kept_bytes, version_count, version_bytes) >= 0);

-- When the server last decided about keeping a version of the item; null before the first replacement.
ALTER TABLE saltern.items ADD COLUMN kept_at timestamptz;

GRANT SELECT, INSERT, UPDATE, DELETE ON saltern.replaced_contents TO saltern_server;
GRANT UPDATE (version_count, version_bytes) ON saltern.accounts TO saltern_server;

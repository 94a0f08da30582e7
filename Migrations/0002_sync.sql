-- Changes feed, undelete, purge and plans.

-- How long the content of a deleted item can be restored; 0 keeps nothing.
ALTER TABLE saltern.plans
    ADD COLUMN deleted_days integer NOT NULL DEFAULT 30 CHECK (deleted_days BETWEEN 0 AND 3650);

INSERT INTO saltern.plans (plan, max_items, max_item_bytes, max_bytes, max_sessions, max_shares)
VALUES ('pro', 100000, 16777216, 10737418240, 256, 1000)
ON CONFLICT (plan) DO NOTHING;

-- The highest revision of a tombstone that was purged: a cursor that is older may have missed it.
ALTER TABLE saltern.accounts
    ADD COLUMN purged_revision bigint NOT NULL DEFAULT 0 CHECK (purged_revision >= 0);

-- What deleted items held, until it expires. Apart from `items`, so that no reader of items can show it.
CREATE TABLE saltern.deleted_contents (
    account_id uuid NOT NULL,
    item_id uuid NOT NULL,
    collection text COLLATE "C" NOT NULL CHECK (collection ~ '^[a-z0-9-]{1,32}$'),
    format text COLLATE "C" NOT NULL CHECK (octet_length(format) BETWEEN 1 AND 32),
    iterations integer CHECK (iterations > 0),
    title bytea CHECK (octet_length(title) > 0),
    body bytea NOT NULL CHECK (octet_length(body) > 0),
    -- When the item was created.
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (account_id, item_id)
);
ALTER TABLE saltern.deleted_contents ALTER COLUMN title SET STORAGE EXTERNAL;
ALTER TABLE saltern.deleted_contents ALTER COLUMN body SET STORAGE EXTERNAL;

-- What is to be purged, oldest first. Only deleting an item writes to these.
CREATE INDEX deleted_contents_by_expiry ON saltern.deleted_contents (expires_at);
CREATE INDEX tombstones_by_age ON saltern.items (updated_at) WHERE deleted;

GRANT SELECT, INSERT, UPDATE, DELETE ON saltern.deleted_contents TO saltern_server;

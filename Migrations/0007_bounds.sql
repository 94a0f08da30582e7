-- Bounds: what an account can make the server keep is counted and found oldest first, and a statement about one item
-- reads no other.

ALTER TABLE saltern.accounts
    -- Tombstones, and what deleted items held: rows of deleted_contents, and their sealed bytes.
    ADD COLUMN tombstone_count bigint NOT NULL DEFAULT 0 CHECK (tombstone_count >= 0),
    ADD COLUMN kept_count bigint NOT NULL DEFAULT 0 CHECK (kept_count >= 0),
    ADD COLUMN kept_bytes bigint NOT NULL DEFAULT 0 CHECK (kept_bytes >= 0);

UPDATE saltern.accounts a SET tombstone_count = n.tombstones
FROM (SELECT i.account_id, count(*) AS tombstones FROM saltern.items i WHERE i.deleted GROUP BY i.account_id) n
WHERE a.account_id = n.account_id;
UPDATE saltern.accounts a SET kept_count = n.contents, kept_bytes = n.bytes
FROM (
    SELECT k.account_id, count(*) AS contents,
        sum(octet_length(k.body) + coalesce(octet_length(k.title), 0))::bigint AS bytes
    FROM saltern.deleted_contents k GROUP BY k.account_id
) n
WHERE a.account_id = n.account_id;

-- Each of these indexes has a condition that holds for every row. Only a statement that says it too can use the index,
-- so the planner takes it for nothing else: by statistics from a time when accounts had an item each it looked for one
-- item among all revisions of its account, or for one account's tombstones among everybody's.
DROP INDEX saltern.items_by_revision, saltern.tombstones_by_age, saltern.deleted_contents_by_expiry,
    saltern.security_events_by_age;
CREATE INDEX tombstones_by_age ON saltern.items (updated_at) WHERE deleted AND updated_at > '-infinity';
CREATE INDEX deleted_contents_by_expiry ON saltern.deleted_contents (expires_at) WHERE created_at > '-infinity';
CREATE INDEX security_events_by_age ON saltern.security_events (occurred_at) WHERE occurred_at > '-infinity';
CREATE INDEX items_by_revision ON saltern.items (account_id, revision) WHERE revision > 0;
-- The oldest tombstones of an account. Only deletions write to it.
CREATE INDEX tombstones_by_revision ON saltern.items (account_id, revision) WHERE deleted AND revision > 0;
-- What an account's deleted items held, in the order in which it makes room.
CREATE INDEX deleted_contents_by_age ON saltern.deleted_contents (account_id, expires_at, item_id)
    WHERE expires_at > '-infinity';
-- The events of a kind, of which the latest are kept.
CREATE INDEX security_events_by_kind ON saltern.security_events (account_id, kind, occurred_at, event_id)
    WHERE kind > '';

-- However few rows most accounts have: the planner shall expect many of the one that is asked about, and look for those
-- that are named rather than through all of them.
ALTER TABLE saltern.items ALTER COLUMN account_id SET (n_distinct = -0.01);
ALTER TABLE saltern.deleted_contents ALTER COLUMN account_id SET (n_distinct = -0.01);
ALTER TABLE saltern.rotation_items ALTER COLUMN account_id SET (n_distinct = -0.01);
ALTER TABLE saltern.security_events ALTER COLUMN account_id SET (n_distinct = -0.01);
ALTER TABLE saltern.account_shares ALTER COLUMN account_id SET (n_distinct = -0.01);

DELETE FROM saltern.security_events e
USING (
    SELECT o.account_id, o.occurred_at, o.event_id,
        row_number() OVER (PARTITION BY o.account_id, o.kind ORDER BY o.occurred_at DESC, o.event_id DESC) AS place
    FROM saltern.security_events o
) n
WHERE n.place > 100 AND e.account_id = n.account_id AND e.occurred_at = n.occurred_at AND e.event_id = n.event_id;

ANALYZE saltern.items, saltern.deleted_contents, saltern.rotation_items, saltern.security_events,
    saltern.account_shares;

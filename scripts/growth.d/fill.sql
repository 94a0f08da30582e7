-- :accounts accounts as they are after a year: two sessions, one of which has ended, three items, one of which was deleted
-- long ago, what another deleted item held, which has expired, an older version of an item, which has expired, an old event and a new one. 'person7@example.org' is the
-- seventh, and its id is md5('account 7').
\set ON_ERROR_STOP on
SET synchronous_commit = off;

CREATE TEMPORARY TABLE person AS
SELECT n, md5('account ' || n)::uuid AS account_id, 'person' || n || '@example.org' AS userid
FROM generate_series(1, :accounts) n;

INSERT INTO saltern.logins (userid, account_id, verifier, kdf_iterations)
SELECT userid, account_id, sha256(userid::bytea), 600000 FROM person;

INSERT INTO saltern.accounts (
    account_id, userid, plan, revision, item_count, item_bytes, tombstone_count, kept_count, kept_bytes,
    version_count, version_bytes, created_at)
SELECT account_id, userid, 'default', 6, 2, 600, 1, 1, 300, 1, 300, now() - interval '365 days' FROM person;

INSERT INTO saltern.sessions (account_id, token_hash, session_id, created_at, last_used_at, expires_at)
SELECT account_id, sha256((userid || s)::bytea), md5(userid || s)::uuid, now() - interval '60 days',
    now() - CASE s WHEN 1 THEN interval '1 hour' ELSE interval '40 days' END, now() + interval '300 days'
FROM person, generate_series(1, 2) s;

INSERT INTO saltern.items (account_id, item_id, revision, collection, format, body, created_at, updated_at)
SELECT account_id, md5(userid || i)::uuid, 4 + i, 'default', 'opaque',
    decode(repeat(md5(userid || i), 19), 'hex') || '\xff', now() - interval '300 days', now() - interval '200 days'
FROM person, generate_series(1, 2) i;

INSERT INTO saltern.items (account_id, item_id, revision, deleted, collection, created_at, updated_at)
SELECT account_id, md5(userid || 3)::uuid, 3, true, 'default', now() - interval '300 days', now() - interval '200 days'
FROM person;

INSERT INTO saltern.deleted_contents (account_id, item_id, collection, format, body, created_at, expires_at)
SELECT account_id, md5(userid || 4)::uuid, 'default', 'opaque', decode(repeat(md5(userid), 18), 'hex'),
    now() - interval '300 days', now() - interval '1 day'
FROM person;

INSERT INTO saltern.replaced_contents (
    account_id, item_id, revision, collection, format, body, created_at, updated_at, replaced_at, expires_at)
SELECT account_id, md5(userid || 1)::uuid, 1, 'default', 'opaque', decode(repeat(md5(userid), 18), 'hex') || '\xffffffffffffffffffffffff',
    now() - interval '300 days', now() - interval '300 days', now() - interval '31 days', now() - interval '1 day'
FROM person;

INSERT INTO saltern.security_events (account_id, occurred_at, event_id, kind)
SELECT account_id, now() - e * interval '300 days', md5(userid || 'event' || e)::uuid, 'credential_changed'
FROM person, generate_series(1, 2) e;

-- One more of each hundred that nobody has used but to register, two months ago.
CREATE TEMPORARY TABLE stranger AS
SELECT n, md5('stranger ' || n)::uuid AS account_id, 'stranger' || n || '@example.org' AS userid
FROM generate_series(1, :accounts / 100) n;

INSERT INTO saltern.logins (userid, account_id, verifier, kdf_iterations)
SELECT userid, account_id, sha256(userid::bytea), 600000 FROM stranger;

INSERT INTO saltern.accounts (account_id, userid, plan, created_at)
SELECT account_id, userid, 'default', now() - interval '60 days' FROM stranger;

INSERT INTO saltern.sessions (account_id, token_hash, session_id, created_at, last_used_at, expires_at)
SELECT account_id, sha256(userid::bytea), md5(userid)::uuid, now() - interval '60 days', now() - interval '60 days',
    now() + interval '300 days'
FROM stranger;

VACUUM ANALYZE saltern.logins, saltern.accounts, saltern.sessions, saltern.items, saltern.deleted_contents,
    saltern.replaced_contents,
    saltern.security_events;

-- The server's role records what the server does, and no act of an admin. It sets neither locks nor plans of accounts.
-- compatible with: 8

-- The server deletes an account for its owner, and records that. Admins record as the schema's owner, whom no policy
-- restricts. Policies of a table on a cluster have no subqueries, so a row is compared with the time and not with the row
-- before; the program stamps rows in their order.
CREATE POLICY audit_log_read ON saltern.audit_log FOR SELECT TO saltern_server USING (true);
CREATE POLICY audit_log_record ON saltern.audit_log FOR INSERT TO saltern_server
    WITH CHECK (
        actor = 'account' AND action = 'account_deleted' AND target_account IS NOT NULL AND detail IS NULL
        AND occurred_at > clock_timestamp() - interval '15 minutes'
        AND occurred_at < clock_timestamp() + interval '1 minute');
ALTER TABLE saltern.audit_log ENABLE ROW LEVEL SECURITY;

-- A right to a whole table includes all of its columns, and goes together with the rights to single ones.
REVOKE INSERT, UPDATE ON saltern.accounts FROM saltern_server;
GRANT INSERT (account_id, userid, keyring, keyring_revision, created_at, plan, invite_id)
    ON saltern.accounts TO saltern_server;
GRANT UPDATE (
    userid, revision, item_count, item_bytes, keyring, keyring_revision, credential_revision, purged_revision,
    tombstone_count, kept_count, kept_bytes, writer)
    ON saltern.accounts TO saltern_server;

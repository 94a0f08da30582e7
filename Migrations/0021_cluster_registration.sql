-- Lets servers register accounts on a cluster, which inserts all columns with defaults.
-- compatible with: 8

GRANT INSERT (
    revision, item_count, item_bytes, credential_revision, purged_revision, tombstone_count, kept_count, kept_bytes,
    version_count, version_bytes)
    ON saltern.accounts TO saltern_server;

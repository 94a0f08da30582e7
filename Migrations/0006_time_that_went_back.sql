-- Time that went back: after a restore, or a failover to a standby that had not everything yet, no number is given out
-- again that clients have seen.

ALTER TABLE saltern.installation
    -- No change takes a number at or below it. It only ever rises, to seconds of Unix time times 2^20, so that it differs
    -- however often one backup is restored; and it stays a number that JSON carries exactly.
    ADD COLUMN revision_base bigint NOT NULL DEFAULT 0 CHECK (revision_base BETWEEN 0 AND 9007199254740991),
    -- Which history of the database this is; see below. Whoever finds that it is another moves the base first.
    ADD COLUMN fingerprint text CHECK (octet_length(fingerprint) BETWEEN 1 AND 200);

-- What a copy of the database does not share with it: the cluster's identifier, the timeline of its write-ahead log, the
-- database's and the installation table's object identifiers. Null on a standby, which has no history of its own yet.
-- What a service does not let its customers know is a hyphen.
CREATE FUNCTION saltern.database_fingerprint() RETURNS text
LANGUAGE plpgsql
AS $$
DECLARE
    cluster text := '-';
    timeline text := '-';
BEGIN
    IF pg_catalog.pg_is_in_recovery() THEN
        RETURN NULL;
    END IF;
    BEGIN
        cluster := (SELECT c.system_identifier FROM pg_catalog.pg_control_system() c);
    EXCEPTION WHEN insufficient_privilege OR feature_not_supported OR undefined_function THEN
        NULL;
    END;
    -- Not pg_control_checkpoint(): after a promotion that tells the old timeline until the next checkpoint.
    BEGIN
        timeline := pg_catalog.left(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 8);
    EXCEPTION WHEN insufficient_privilege OR feature_not_supported OR undefined_function THEN
        NULL;
    END;
    RETURN cluster || '/' || timeline
        || '/' || (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = pg_catalog.current_database())
        || '/' || 'saltern.installation'::pg_catalog.regclass::pg_catalog.oid;
END
$$;

-- What was restored before this migration cannot be told from what was not: the history begins here.
UPDATE saltern.installation SET fingerprint = saltern.database_fingerprint();
ALTER TABLE saltern.installation ALTER COLUMN fingerprint SET NOT NULL;

GRANT UPDATE (revision_base, fingerprint) ON saltern.installation TO saltern_server;

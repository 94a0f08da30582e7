-- The number of rows of a vault, for the planner. Statistics of a time when each vault had one row would let a
-- statement about one entry or member read all of them.
-- compatible with: 8

DO $$
BEGIN
    -- Citus rejects options of a column of a distributed table, and copies none to the shards.
    IF to_regclass('pg_catalog.pg_dist_partition') IS NOT NULL THEN
        IF EXISTS (
            SELECT FROM pg_catalog.pg_dist_partition p WHERE p.logicalrelid = 'saltern.vault_entries'::regclass
        ) THEN
            RETURN;
        END IF;
    END IF;
    ALTER TABLE saltern.vault_members ALTER COLUMN vault_id SET (n_distinct = -0.01);
    ALTER TABLE saltern.vault_entries ALTER COLUMN vault_id SET (n_distinct = -0.01);
    ALTER TABLE saltern.vault_boxes ALTER COLUMN vault_id SET (n_distinct = -0.01);
    ALTER TABLE saltern.vault_seals ALTER COLUMN vault_id SET (n_distinct = -0.01);
END
$$;

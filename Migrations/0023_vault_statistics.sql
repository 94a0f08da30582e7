-- The number of rows of a vault, for the planner. Statistics of a time when each vault had one row would let a statement
-- about one entry or member read all of them.
-- compatible with: 8

ALTER TABLE saltern.vault_members ALTER COLUMN vault_id SET (n_distinct = -0.01);
ALTER TABLE saltern.vault_entries ALTER COLUMN vault_id SET (n_distinct = -0.01);
ALTER TABLE saltern.vault_boxes ALTER COLUMN vault_id SET (n_distinct = -0.01);
ALTER TABLE saltern.vault_seals ALTER COLUMN vault_id SET (n_distinct = -0.01);

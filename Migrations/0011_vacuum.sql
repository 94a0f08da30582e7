-- Vacuum comes after a part of a table that stays small when the table does not. By default a fifth of it has to be dead
-- first: of a hundred million items that is twenty million rows, and their place in two indexes.
-- compatible with: 8

-- Accounts are written to with every change of an item; the short rows of the large tables are what others wait for.
ALTER TABLE saltern.items SET (
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.02,
    toast.autovacuum_vacuum_scale_factor = 0.02, toast.autovacuum_vacuum_threshold = 5000);
ALTER TABLE saltern.sessions SET (
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.02);
ALTER TABLE saltern.accounts SET (
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000,
    autovacuum_analyze_scale_factor = 0.02);

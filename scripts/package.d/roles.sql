-- The roles and the database, for a user who may create both. Run again, it sets the passwords and keeps the rest.
-- `saltern-admin setup` runs it. By hand, with the passwords on standard input and in no argument:
--   \set owner_password …
--   \set server_password …
--   \i /usr/share/saltern/roles.sql
-- The owner migrates and owns the schema; the server's role may do what the migrations grant to the group.
\set ON_ERROR_STOP on
-- Statements with a password stay out of the log and of pg_stat_statements. Only a superuser may set this.
SELECT rolsuper AS is_superuser FROM pg_roles WHERE rolname = current_user \gset
\if :is_superuser
SET log_statement = 'none';
SET log_min_duration_statement = -1;
SET log_min_error_statement = 'panic';
SET pg_stat_statements.track_utility = off;
\endif
SELECT NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'saltern_server') AS lacks_server,
    NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'saltern_owner') AS lacks_owner,
    NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'saltern_app') AS lacks_app,
    NOT EXISTS (SELECT FROM pg_database WHERE datname = 'saltern') AS lacks_database \gset
BEGIN;
\if :lacks_server
CREATE ROLE saltern_server NOLOGIN;
\endif
\if :lacks_owner
CREATE ROLE saltern_owner LOGIN;
\endif
\if :lacks_app
CREATE ROLE saltern_app LOGIN;
\endif
GRANT saltern_server TO saltern_app;
ALTER ROLE saltern_owner PASSWORD :'owner_password';
ALTER ROLE saltern_app PASSWORD :'server_password';
\if :is_superuser
\else
-- A database belongs to a role that its maker is a member of.
GRANT saltern_owner TO CURRENT_USER;
\endif
COMMIT;
\if :lacks_database
CREATE DATABASE saltern OWNER saltern_owner ENCODING 'UTF8' TEMPLATE template0;
\endif
REVOKE ALL ON DATABASE saltern FROM PUBLIC;
GRANT CONNECT ON DATABASE saltern TO saltern_server;

-- The roles and the database, for a user who may create both. Run again, it sets the passwords and keeps the rest. When it
-- fails, it says why, and what it has made is removed again.
-- `saltern-admin setup` runs it. By hand, with the passwords on standard input and in no argument:
--   \set owner_password …
--   \set server_password …
--   \i /usr/share/saltern/roles.sql
-- The owner migrates and owns the schema; the server's role may do what the migrations grant to the group.
\set ON_ERROR_STOP on
SET client_min_messages = warning;
-- Statements with a password stay out of the log and of pg_stat_statements. Only a superuser may set this.
SELECT rolsuper AS is_superuser FROM pg_roles WHERE rolname = current_user \gset
\if :is_superuser
SET log_statement = 'none';
SET log_min_duration_statement = -1;
SET log_min_error_statement = 'panic';
SET pg_stat_statements.track_utility = off;
\endif
DO $$
DECLARE
    caller pg_roles;
    present record;
BEGIN
    SELECT * INTO caller FROM pg_roles WHERE rolname = current_user;
    IF NOT (caller.rolsuper OR caller.rolcreaterole) THEN
        RAISE EXCEPTION 'the role "%" may not create roles', current_user
            USING HINT = 'Connect as a role that has CREATEROLE and CREATEDB, such as the administrator of a managed service.';
    END IF;
    SELECT pg_get_userbyid(datdba) AS owner, pg_encoding_to_char(encoding) AS encoding INTO present
        FROM pg_database WHERE datname = 'saltern';
    IF NOT FOUND THEN
        IF NOT (caller.rolsuper OR caller.rolcreatedb) THEN
            RAISE EXCEPTION 'the role "%" may not create databases', current_user
                USING HINT = 'Connect as a role that has CREATEROLE and CREATEDB, such as the administrator of a managed service.';
        END IF;
    ELSIF present.owner <> 'saltern_owner' THEN
        RAISE EXCEPTION 'the database "saltern" belongs to the role "%" and not to "saltern_owner"', present.owner
            USING HINT = 'If nothing is in it, drop it: DROP DATABASE saltern. Then run this again.';
    ELSIF present.encoding <> 'UTF8' THEN
        RAISE EXCEPTION 'the database "saltern" has the encoding % and not UTF8', present.encoding
            USING HINT = 'If nothing is in it, drop it: DROP DATABASE saltern. Then run this again.';
    END IF;
END $$;
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
-- CREATE DATABASE is no part of a transaction.
\set ON_ERROR_STOP off
CREATE DATABASE saltern OWNER saltern_owner ENCODING 'UTF8' TEMPLATE template0;
\set lacks_database :ERROR
\set ON_ERROR_STOP on
\if :lacks_database
BEGIN;
\if :lacks_app
DROP ROLE saltern_app;
\endif
\if :lacks_owner
DROP ROLE saltern_owner;
\endif
\if :lacks_server
DROP ROLE saltern_server;
\endif
COMMIT;
DO $$ BEGIN
    RAISE EXCEPTION 'the database "saltern" was not created, and the roles that were new are removed again'
        USING HINT = 'Resolve the error above, then run this again.';
END $$;
\endif
\endif
-- As the owner: an administrator that is no superuser may have the owner's rights without inheriting them.
SET ROLE saltern_owner;
REVOKE ALL ON DATABASE saltern FROM PUBLIC;
GRANT CONNECT ON DATABASE saltern TO saltern_server;
RESET ROLE;

#!/usr/bin/env bash
# The PostgreSQL image calls this once for a new data folder. Creates the owner, which migrates, and the server's role, which
# has the rights that the migrations grant to its group.
set -euo pipefail

# The standby does not exist yet, so no commit may wait for it.
export PGOPTIONS='-c synchronous_commit=local'
# psql reads the passwords itself, because other processes can read its arguments.
psql --no-psqlrc --set ON_ERROR_STOP=1 --username postgres --dbname postgres <<'SQL'
\set owner_password `cat /run/secrets/owner-password`
\set server_password `cat /run/secrets/server-password`
-- Statements with a password stay out of the log, also after an error.
SET log_statement = 'none';
SET log_min_duration_statement = -1;
SET log_min_error_statement = 'panic';
CREATE ROLE saltern_server NOLOGIN;
CREATE ROLE saltern_owner LOGIN PASSWORD :'owner_password';
CREATE ROLE saltern_app LOGIN PASSWORD :'server_password' IN ROLE saltern_server;
CREATE DATABASE saltern OWNER saltern_owner;
REVOKE ALL ON DATABASE saltern FROM PUBLIC;
GRANT CONNECT ON DATABASE saltern TO saltern_server;
SQL

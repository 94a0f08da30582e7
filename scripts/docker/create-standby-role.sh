#!/usr/bin/env bash
# The role that a standby copies with. Called once by the PostgreSQL image, when its data folder is new; for data that is
# there, by hand (docs/admin/high-availability.md), when the container may just have been started. A second call sets the
# password again.
set -euo pipefail

# There is no standby yet that a commit could wait for.
export PGOPTIONS='-c synchronous_commit=local'
timeout 60 bash -c 'until pg_isready --quiet; do sleep 1; done'
# psql reads the password itself, because other processes can read its arguments.
export STANDBY_PASSWORD_FILE=${STANDBY_PASSWORD_FILE:-/run/secrets/standby-password}
psql --no-psqlrc --set ON_ERROR_STOP=1 --username postgres --dbname postgres <<'SQL'
\set standby_password `cat "$STANDBY_PASSWORD_FILE"`
-- Statements with a password stay out of the log, also after an error.
SET log_statement = 'none';
SET log_min_duration_statement = -1;
SET log_min_error_statement = 'panic';
SELECT 'CREATE ROLE saltern_standby' WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'saltern_standby') \gexec
ALTER ROLE saltern_standby LOGIN REPLICATION PASSWORD :'standby_password';
SQL

#!/usr/bin/env bash
# The role that a standby copies with. Called once by the PostgreSQL image, when its data folder is new; for data that is
# there, by hand (docs/admin/high-availability.md), when the container may just have been started.
set -euo pipefail

# There is no standby yet that a commit could wait for.
export PGOPTIONS='-c synchronous_commit=local'
timeout 60 bash -c 'until pg_isready --quiet; do sleep 1; done'
# psql reads the password itself, because other processes can read its arguments.
export STANDBY_PASSWORD_FILE=${STANDBY_PASSWORD_FILE:-/run/secrets/standby-password}
psql --no-psqlrc --set ON_ERROR_STOP=1 --username postgres --dbname postgres <<'SQL'
\set standby_password `cat "$STANDBY_PASSWORD_FILE"`
SET log_statement = 'none';
CREATE ROLE saltern_standby LOGIN REPLICATION PASSWORD :'standby_password';
SQL

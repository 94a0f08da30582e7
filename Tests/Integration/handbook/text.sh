# shellcheck shell=bash disable=SC2154
# The commands in the text of docs/admin, outside of blocks.
saltern version
saltern statements
saltern health
saltern health --ready
saltern stats
saltern stats --json
saltern doctor --json
psql_as_superuser --command 'GRANT pg_read_all_settings TO saltern_app'
psql_as_superuser --command 'GRANT pg_read_all_stats TO saltern_app'
saltern doctor
saltern migrate status
saltern migrate verify
saltern migrate finish --help
saltern purge
saltern purge --json
saltern plan list --json
saltern plan set pro --items 200000 --item-bytes 1048576 --bytes 268435456 --sessions 100 --shares 50 --deleted-days 30 --yes
saltern plan set pro --vaults 50 --memberships 200 --vault-members 64 --vault-items 50000 --vault-bytes 1073741824 --yes
saltern master-key list
saltern signing-key create --help
saltern service create billing-1 --audience billing
saltern service list
saltern service remove billing-1
saltern event list
saltern event list --parked
saltern event retry --help
saltern event drop --help
saltern destination create billing --audience billing --help
saltern destination list
saltern destination rotate billing --help
saltern destination remove billing --help
saltern signing-key list --help
saltern signing-key rotate --help
saltern signing-key prune --help
openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out backup-key.pem
saltern certificate export --der
saltern certificate renew
systemctl reload saltern
saltern certificate check
saltern certificate check --days 30
saltern account list --locked --plan pro --all
saltern account list --after ada
saltern account list --userid-part example --plan pro
saltern account show --id "$account_id"
saltern account lock ada@example.org --actor bob
saltern account unlock ada@example.org
saltern account delete --never-used --older-than 30d --yes
saltern invite create --json
saltern invite revoke "$(sed -n 's/.*"invites":\[{"id":"\([^"]*\)".*/\1/p' "$work/said" | tail -n 1)"
saltern audit verify --expect "$(saltern audit verify && sed -n 's/^head //p' "$work/said" | tail -n 1)"
[[ $(tail -n 1 /var/backups/saltern/*.backup) == *" $(head -n -1 /var/backups/saltern/*.backup | sha256sum | cut -d ' ' -f 1)" ]]
saltern restored --end-sessions
psql_as_superuser --dbname saltern --command 'BEGIN; ALTER SCHEMA saltern RENAME TO saltern_before; ROLLBACK'
psql_as_superuser --dbname saltern --command 'ALTER TABLE saltern.items SET (autovacuum_vacuum_scale_factor = 0.01)'
psql_as_superuser --command "BEGIN; ALTER ROLE saltern_app SET citus.propagate_set_commands = 'local'; ROLLBACK"
psql_as_superuser --command "BEGIN; ALTER ROLE saltern_app SET plan_cache_mode = 'force_custom_plan'; ROLLBACK"
psql_as_superuser --command "SET plan_cache_mode = 'force_custom_plan'"
saltern restored
systemctl restart saltern
copy_compose
docker-compose build --pull --no-cache && docker-compose up --detach
docker-compose kill -s HUP server
docker-compose run --rm admin account list
docker-compose run --rm admin doctor
docker-compose run --rm admin backup backups
docker-compose run --rm admin restore backups/… --help
docker-compose exec --user postgres postgres psql saltern --command 'ALTER SCHEMA saltern RENAME TO saltern_before'
[[ $(command docker-compose config | sed -n '/^  admin:/,/^  [a-z]/p') == *SALTERN_SUPERUSER_DATABASE_URL_FILE* ]]
sha256sum secrets/* >"$work/secrets" && rm -f secrets/superuser-*
scripts/docker/make-secrets && sha256sum --check --quiet "$work/secrets"
if scripts/docker/make-secrets; then fail "secrets to be left as they are"; fi
docker-compose run --rm --no-deps admin backup backups
docker-compose run --rm admin certificate rotate
docker-compose run --rm admin master-key rotate

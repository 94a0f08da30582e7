# shellcheck shell=bash disable=SC2034,SC2154
# Runs and checks the blocks of docs/admin, and statements of the text around them.

backup='' types_settings='' shared=''

# here: the handbook's words, made those of this machine.
here() {
    sed --regexp-extended "
        s|postgresql://(saltern_[a-z]*):(\\\$[a-z]*)@localhost/saltern|postgresql://\1:\2@${postgres_sockets//\//%2F}/saltern|
        s|/var/backups|$folder/backups|g; s|saltern-20261123T070000Z.backup|${backup:-}|
        s|/usr/share/saltern|$folder/share|; s|/etc/saltern|$folder/etc|; s|/etc/systemd/system|$folder/units|; s|/run/saltern|$folder|
        s|/var/lib/saltern|$folder/lib|g; s|'\[::\]:8443'|127.0.0.1:$(free_port)|; s|api.example.org|localhost|
        s|https://HOST/|${SALTERN_TEST_URL:-}/|; s|\.saltern/run.env|${own_home:-}/run.env|
        s|saltern account delete ada@example.org|& --yes|; s|2Yk0R6fPq1cVxTn8LwZs4e|${shared:-&}|"
}

# type_in: the commands on standard input.
type_in() {
    here >"$work/typing"
    # On one line and without remarks, for later checks of the typed commands.
    sed --null-data 's/\\\n */ /g' "$work/typing" |
        sed 's/\(^\| \)# .*//; s/^saltern-admin \(.*\)/&; saltern \1/' >>"$work/typed"
    # shellcheck source=/dev/null
    source "$work/typing" >>"$work/said"
}

serve() {
    start_own_server "SALTERN_DATABASE_URL=$(postgres_url saltern_app saltern)" \
        "SALTERN_OWNER_DATABASE_URL=$(postgres_url saltern_owner saltern)" "SALTERN_SALT_PREFIX=org.example.notes:" \
        "SALTERN_MASTER_KEY_FILE=$folder/lib/master.key" "SALTERN_TLS_DIRECTORY=$folder/lib/tls" \
        SALTERN_APPLE_APP_IDS=A1B2C3D4E5.org.example.notes "$@"
    certificate=$folder/lib/tls/certificate.pem
}

# share: a share of Ada's; fills shared.
share() {
    request POST /v1/shares \
        "{\"format\":\"aes-256-gcm\",\"salt\":\"$(random_base64 16)\",\"iterations\":600000,\"sealed\":\"$(random_base64 100)\"}"
    expect_status 201
    shared=$(json .id)
}

# person: Ada, as an app has registered her.
person() {
    token=
    request POST /v1/accounts "{\"userid\":\"ada@example.org\",\"passwordKey\":\"$(random_base64 32)\",\"kdf\":{\"iterations\":600000}}"
    expect_status 201
    account_id=$(json .accountId)
    token=$(json .session.token)
}

# copy_compose: what Docker Compose is called beside, with no secrets yet.
copy_compose() {
    export SALTERN_HOST=localhost SALTERN_SALT_PREFIX=org.example.notes:
    [[ ! -e docker-compose.yml ]] || return 0
    cp -- "$repository"/docker-compose*.yml .
    cp --recursive -- "$repository"/scripts/{docker,lib} scripts/
}

has_executable() { sed "s|/usr/local/bin/saltern|$executable|"; }

# verify_unit FILE: systemd reports no fault in it.
verify_unit() {
    systemd-analyze verify --man=no "$1" >"$work/unit" 2>&1 || fail "systemd to take it: $(<"$work/unit")"
    ! grep "$(basename -- "$1")" "$work/unit" || fail "a unit without complaints"
}

# try NAME: the block on standard input, which is no commands.
try() {
    case $1 in
        'Roles and database sql 1') psql_as_superuser ;;
        'PgBouncer sql 1')
            psql_as_superuser
            serve_once env SALTERN_DATABASE_POOLING=transaction "$executable" serve
            [[ $(psql_as_superuser -Atc "SELECT count(*) FROM pg_db_role_setting") == 1 ]] || fail "the role to have settings"
            psql_as_superuser --command 'ALTER ROLE saltern_app RESET ALL'
            ;;
        'Delete a share link sql 1')
            # shellcheck disable=SC1003  # one backslash
            sed "s/'\\\\x…'/'\\\\x$(tail -n 1 "$work/share")'/" | psql "$(postgres_url saltern_owner saltern)" --quiet
            ;;
        'Log format json 1') try_line ;;
        # A formula, and the columns that it has constants for.
        'Sizing text 1') grep --quiet '^accounts × ' ;;
        # libpq reads it: the name of a host that there is not.
        'Managed PostgreSQL ini 1')
            sed 's/NAME/there/; s/example.net/invalid/; s/^sslmode=.*/sslmode=require/' >"$work/services"
            ! PGSERVICEFILE=$work/services PGSERVICE=there psql --command 'SELECT 1' >"$work/psql" 2>&1 || fail "nobody there"
            grep --quiet 'db.invalid' "$work/psql" || fail "libpq to read it: $(<"$work/psql")"
            ;;
        *) fail "somebody to try $1" ;;
    esac
}

# The unit is one that systemd takes, and its settings are some that the server takes.
try_unit() {
    local settings
    has_executable <"$folder/units/saltern.service" >"$folder/saltern.service"
    verify_unit "$folder/saltern.service"
    mapfile -t settings < <(
        sed -n "s|^EnvironmentFile=||p" "$folder/saltern.service" | here | xargs grep '^[A-Z]'
        sed -n "s|^Environment=||p" "$folder/saltern.service" | sed "s|%d|$folder/etc|"
    )
    serve_once env "${settings[@]}" "$(sed -n 's|^ExecStart=||; s| serve$||p' "$folder/saltern.service")" serve
}

# A line of the log has what the example has.
try_line() {
    create_item
    local example line
    example=$(jq --raw-output 'keys | join(" ")')
    wait_until 180 grep --quiet '"route":"PUT /v1/items/{id}"' "$own_home/run.log" || fail "a line of the request"
    line=$(grep '"route":"PUT /v1/items/{id}"' "$own_home/run.log" | tail -n 1 | jq --raw-output 'keys | join(" ")')
    [[ $line == "$example" ]] || fail "a line with $example, not $line"
}

# before NAME
before() {
    types_settings=
    case $1 in
        'Try it 1') start_own_server ;;
        'Docker Compose 1') copy_compose ;;
        'Set up by hand 1')
            cp -- "$repository/scripts/package.d/saltern.conf" "$folder/etc/"
            install -D --target-directory "$folder/share" -- "$repository/scripts/package.d/roles.sql"
            install --directory --mode 0700 "$folder/lib"
            ;;
        'From source 2')
            install --directory --mode 0700 "$folder/lib" "$folder/units"
            cp --recursive -- "$repository/scripts/package.d" scripts/
            ;;
        'PgBouncer sql 1')
            source_environment
            SALTERN_LISTEN=127.0.0.1:$(free_port)
            export SALTERN_LISTEN
            ;;
        'Master key 1') export SALTERN_MASTER_KEY_FILE=$folder/another.key types_settings=yes ;;
        'Lost master key 1') query "INSERT INTO saltern.second_factors (account_id, sealed_secret, created_at)
            SELECT account_id, 'x', now() FROM saltern.logins WHERE userid = 'ada@example.org'" ;;
        'Delete a share link 1') share ;;
        # The installation that is there.
        'A standby with Docker Compose '* | 'Promote the standby 1' | 'Upgrade PostgreSQL with Docker Compose 1' | 'Upgrade with Docker Compose 1')
            export SALTERN_HOST=localhost SALTERN_SALT_PREFIX=org.example.notes:
            ;;
        # The page has it before the one that makes the backup.
        'Restore a backup 1')
            type_in < <(handbook_block 'Make a backup 1')
            backup=$(basename -- "$folder"/backups/saltern/*.backup)
            ;;
    esac
}

# after NAME
after() {
    local name
    case $1 in
        'Try it 1')
            remove_own_server
            own_home=
            ;;
        'Set up by hand 1')
            umask 0022
            forget_database
            rm -rf -- "${folder:?}/lib" "$folder/share" "${folder:?}"/etc/*
            ;;
        'From source 1') [[ -x $folder/bin/saltern ]] || fail "the program to be installed" ;;
        'From source 2')
            [[ -x $folder/bin/saltern-admin ]] || fail "the command to be installed"
            type_in < <(handbook_block 'Set up by hand 1' | sed --quiet '/^umask 077$/,/^saltern-admin doctor$/p')
            umask 0022
            [[ -s $folder/lib/master.key ]] || fail "the package's lines to be typed"
            serve
            person
            try_unit
            ;;
        'Manage accounts 1')
            [[ $(query "SELECT count(*) FROM saltern.logins WHERE userid = 'ada@example.org'") == 0 ]] || fail "no Ada"
            person
            ;;
        'Delete a share link 1') cp -- "$work/said" "$work/share" ;;
        'Delete a share link sql 1')
            request GET "/v1/shares/$shared"
            expect_status 404
            [[ $(query 'SELECT count(*) FROM saltern.account_shares') == 0 ]] || fail "no share of Ada's"
            ;;
        'App links 1')
            grep --quiet --ignore-case '^content-type: application/json' "$work/said" || fail "JSON: $(<"$work/said")"
            ;;
        'Make a backup 1') [[ -n $(ls "$folder/backups/saltern") ]] || fail "a backup" ;;
        'Restore a backup 1')
            rm -- "$folder/backups/saltern/$backup"
            backup=
            [[ $(query 'SELECT userid FROM saltern.logins') == ada@example.org ]] || fail "Ada to be there again"
            ;;
        'Upgrade PostgreSQL with Docker Compose 1')
            [[ $(SALTERN_SALT_PREFIX=example: command docker-compose config) == *'POSTGRES_MAJOR: '?17*postgres:17-bookworm* ]] ||
                fail "both to be of PostgreSQL 17: $(SALTERN_SALT_PREFIX=example: command docker-compose config)"
            sed --in-place '/^POSTGRES_MAJOR=/d' .env
            ;;
        'Handover without a balancer 1')
            stop_own_server
            serve "SALTERN_HANDOVER_SOCKET=$SALTERN_HANDOVER_SOCKET"
            [[ -S $SALTERN_HANDOVER_SOCKET ]] || fail "a socket for the next server"
            ;;
    esac
    for name in "${!SALTERN_@}"; do
        [[ $name == SALTERN_TEST_* ]] || unset "$name"
    done
}

#!/usr/bin/env bash
# Runs in a fresh Debian that was booted, as root: an operator's commands, from the installation of the package to its end, with
# units that systemd really starts.
set -euo pipefail

# shellcheck source=scripts/package.d/inside.sh
source /packages/inside.sh

# type_block NAME: commands of the handbook, with the package that is here.
type_block() {
    handbook_block "$1" | sed "s|\./saltern_[^ ]*|/packages/before.deb|; s/^apt-get install/& --quiet --quiet/" >/tmp/block
    # shellcheck source=/dev/null
    source /tmp/block </dev/null
}

# is UNIT NAME VALUE: whether a property of the unit has the value.
is() { [[ $(systemctl show --property "$2" --value "$1") == "$3" ]]; }
require() { is "$@" || fail "$2 of $1 to be $3, not $(systemctl show --property "$2" --value "$1")"; }

is_booted() { [[ $(systemctl is-system-running) == running ]]; }
is_ready() { saltern-admin health --ready; }
set_up() { sed --in-place "s|^#*$1=.*|$1=$2|" /etc/saltern/saltern.conf; }

# begin_requests: one after another, each on a connection of its own, until end_requests.
begin_requests() {
    : >/tmp/failed
    touch /tmp/asking
    while [[ -e /tmp/asking ]]; do
        [[ $(post /v1/sessions "{\"userid\":\"ada\",\"passwordKey\":\"$key\"}") == 201 ]] || cat /tmp/reply >>/tmp/failed
        echo >>/tmp/asked
    done &
    requests=$!
    : >/tmp/asked
}
has_asked() { (($(wc --lines </tmp/asked) >= $1)); }
end_requests() {
    rm /tmp/asking
    wait "$requests"
    [[ ! -s /tmp/failed ]] || fail "every request to be answered: $(head --bytes 1000 /tmp/failed)"
}

# The certificate in use is that of the file.
serves_file() {
    local file=/var/lib/saltern/tls/certificate.pem
    openssl s_client -connect "localhost:$port" </dev/null 2>/dev/null | openssl x509 -fingerprint -sha256 -noout |
        grep --quiet --fixed-strings "$(openssl x509 -fingerprint -sha256 -noout -in $file)"
}

wait_for "Debian to have booted: $(systemctl --failed --no-pager)" is_booted

say "two commands lead to a server, and a third to the first account"
rm -f /etc/systemd/system/multi-user.target.wants/saltern.service
type_block 'Debian package 1' >/tmp/setup || fail "setup: $(</tmp/setup)"
invite=$(sed --quiet 's/^\(sli_[0-9A-Za-z_-]*\) .*/\1/p' /tmp/setup)
[[ -n $invite ]] || fail "an invite: $(</tmp/setup)"
[[ $(post /v1/accounts "{\"userid\":\"ada\",\"passwordKey\":\"$key\",\"invite\":\"$invite\",\"kdf\":{\"iterations\":600000}}") == 201 ]] ||
    fail "to register: $(</tmp/reply)"
log_in

say "the unit is active and enabled, reports that it serves, and starts after a boot"
for name in saltern.service saltern-backup.timer; do
    systemctl --quiet is-active "$name" || fail "$name to be active"
    systemctl --quiet is-enabled "$name" || fail "$name to be enabled"
done
systemctl status --no-pager saltern >/tmp/status
grep --quiet 'Status: "Serving"' /tmp/status || fail "the status: $(</tmp/status)"
systemd-analyze security --threshold=20 --no-pager saltern.service >/tmp/security || fail "less than 2.0: $(tail -n 2 /tmp/security)"
[[ $(systemctl --failed --no-legend) == '' ]] || fail "no unit to fail: $(systemctl --failed --no-legend)"

say "a server that was killed is started again"
main=$(systemctl show --property MainPID --value saltern)
systemctl kill --signal KILL saltern
wait_for "another process" is saltern NRestarts 1
wait_for "a server" is_ready
[[ $(systemctl show --property MainPID --value saltern) != "$main" ]] || fail "another process"
log_in

say "a wrong password is not tried again"
sed --in-place=.kept 's|saltern_app:[0-9a-f]*@|saltern_app:wrong@|' /etc/saltern/database-url
! systemctl restart saltern 2>/dev/null || fail "a start with a wrong password to fail"
require saltern ActiveState failed
require saltern ExecMainStatus 78
require saltern NRestarts 0
journalctl --sync
[[ $(journalctl --output cat _SYSTEMD_UNIT=saltern.service) == *'saltern serve: '*'the password of this role is wrong'* ]] || fail "the reason in the journal"
mv /etc/saltern/database-url.kept /etc/saltern/database-url
systemctl start saltern
log_in

say "a renewed certificate is in use after a reload, without another process"
main=$(systemctl show --property MainPID --value saltern)
saltern-admin certificate renew >/dev/null
! serves_file || fail "the certificate of before"
systemctl reload saltern
wait_for "the new certificate" serves_file
require saltern MainPID "$main"

say "an upgrade restarts nothing, and no request fails"
begin_requests
wait_for "requests" has_asked 3
apt-get install --quiet --quiet /packages/saltern.deb </dev/null >/tmp/apt.log 2>&1 || fail "an upgrade: $(</tmp/apt.log)"
grep --quiet 'saltern-admin migrate up' /tmp/apt.log || fail "it to name the next commands: $(</tmp/apt.log)"
require saltern MainPID "$main"
require saltern NeedDaemonReload no
end_requests
sed 's/^saltern /saltern-admin /' <(handbook_block 'Upgrade Saltern 1') >/tmp/block
# shellcheck source=/dev/null
source /tmp/block >/tmp/upgrade || fail "the commands of an upgrade: $(</tmp/upgrade)"
! is saltern MainPID "$main" || fail "another process"
log_in

say "two instances take turns, and no request fails"
handbook_block 'Handover without a balancer 1' >>/etc/saltern/saltern.conf
systemctl restart saltern
begin_requests
wait_for "requests" has_asked 3
# For the first time and for the second; the third turn is the first instance's again.
type_block 'Handover without a balancer 2' 2>/dev/null || fail "the instances to start: $(journalctl --no-pager --lines 20 --unit 'saltern@*')"
systemctl enable --now saltern@a 2>/dev/null || fail "saltern@a to start: $(journalctl --no-pager --lines 20 --unit saltern@a)"
systemctl disable saltern@b 2>/dev/null
for name in saltern saltern@b; do
    wait_for "$name to end" is "$name" ActiveState inactive
    require "$name" Result success
done
require saltern@a StatusText Serving
end_requests
systemd-analyze security --threshold=20 --no-pager saltern@a.service >/tmp/security || fail "less than 2.0: $(tail -n 2 /tmp/security)"
systemctl disable --now saltern@a 2>/dev/null
systemctl enable --now saltern 2>/dev/null
log_in

say "port 443, with the handbook's drop-in"
mkdir /etc/systemd/system/saltern.service.d
handbook_block 'Ports below 1024 ini 1' >/etc/systemd/system/saltern.service.d/override.conf
set_up SALTERN_LISTEN '[::]:443'
systemctl daemon-reload
systemctl restart saltern || fail "it to start: $(journalctl --no-pager --lines 10 --unit saltern)"
port=443
log_in
saltern-admin doctor >/tmp/doctor || fail "nothing to mend: $(</tmp/doctor)"

# Backups are named by the second.
is_another_second() { [[ ! -e /var/backups/saltern/saltern-$(date --utc +%Y%m%dT%H%M%SZ).backup ]]; }
back_up() {
    wait_for "another second" is_another_second
    systemctl start saltern-backup.service
}

say "a backup is made by the timer's service"
[[ $(systemctl list-timers --no-legend saltern-backup.timer) == *saltern-backup.service* ]] || fail "a timer: $(systemctl list-timers --no-pager)"
printf '%s\n' SALTERN_TOKEN_ISSUER=https://localhost SALTERN_TOKEN_AUDIENCES=billing SALTERN_SIGNING_KEY_FILE=signing-keys \
    >>/etc/saltern/saltern.conf
saltern-admin signing-key create >/dev/null
systemctl start saltern-backup.service || fail "a backup: $(journalctl --no-pager --lines 20 --unit saltern-backup)"
stat --format '%U %a' /var/backups/saltern/*.backup /var/backups/saltern/*.tar /var/backups/saltern-keys/*.tar | uniq >/tmp/modes
[[ $(</tmp/modes) == 'root 600' ]] || fail "files for root alone: $(ls -l /var/backups/*)"
[[ $(saltern-admin audit list --limit 1) == *database_backed_up* ]] || fail "the audit log to have the backup"

say "a backup has settings and certificate beside it, and keys apart, once for each change"
archived() { grep --quiet --line-regexp --fixed-strings "$2" <(tar --list --file "$1"); }
for name in etc/saltern/saltern.conf var/lib/saltern/tls/certificate.pem; do
    archived /var/backups/saltern/*.tar "$name" || fail "$name in the archive"
done
! archived /var/backups/saltern/*.tar var/lib/saltern/tls/key.pem || fail "no key beside the database"
for name in var/lib/saltern/{master.key,signing-keys,tls/key.pem,tls/backup-key.pem} etc/saltern/owner-database-url; do
    archived /var/backups/saltern-keys/*.tar "$name" || fail "$name in the archive of keys"
done
kept=$(echo /var/backups/saltern-keys/*)
back_up
[[ $(find /var/backups/saltern-keys -type f | wc --lines) == 1 ]] || fail "one archive of the same keys: $(ls /var/backups/saltern-keys)"
saltern-admin certificate rotate >/dev/null
back_up
[[ $(find /var/backups/saltern-keys -type f | wc --lines) == 2 && -e $kept ]] || fail "the keys of before, and the new ones"

say "backups of more than 30 days are removed, but for the latest seven"
files() { find "$1" -type f -name "$2" | wc --lines; }
# From 32 to 41 days old, beside those that were made.
for day in {32..41}; do
    for name in saltern/saltern-202001${day}T000000Z.{backup,tar} saltern-keys/saltern-keys-202001${day}T000000Z.tar; do
        touch --date "$day days ago" "/var/backups/$name"
    done
done
back_up
[[ $(files /var/backups/saltern '*.backup') == 7 && $(files /var/backups/saltern '*.tar') == 7 ]] ||
    fail "seven of database and settings: $(ls /var/backups/saltern)"
[[ $(files /var/backups/saltern-keys '*.tar') == 7 ]] || fail "seven of the keys: $(ls /var/backups/saltern-keys)"
[[ ! -e /var/backups/saltern/saltern-20200141T000000Z.backup && -e $kept ]] || fail "the oldest to be removed"
mkdir /etc/systemd/system/saltern-backup.service.d
handbook_block 'Daily backup ini 1' >/etc/systemd/system/saltern-backup.service.d/override.conf
touch --date '80 days ago' /var/backups/saltern/*
systemctl daemon-reload
back_up
[[ $(files /var/backups/saltern '*.backup') == 8 ]] || fail "the handbook's 90 days: $(ls /var/backups/saltern)"
sed --in-place 's/DAYS=.*/DAYS=0/' /etc/systemd/system/saltern-backup.service.d/override.conf
systemctl daemon-reload
! systemctl start saltern-backup.service 2>/dev/null || fail "a retention that is no number of days to be refused"
rm -r /etc/systemd/system/saltern-backup.service.d
systemctl daemon-reload
systemctl reset-failed saltern-backup.service

say "every line of the server in the journal is JSON"
# Also those that a library sends to syslog. systemd's own lines about the units are not of them.
journalctl --sync
journalctl --output cat _SYSTEMD_UNIT=saltern.service _SYSTEMD_UNIT=saltern@a.service _SYSTEMD_UNIT=saltern@b.service >/tmp/lines
(($(wc --lines </tmp/lines) >= 50)) || fail "lines of the server: $(</tmp/lines)"
# A server that does not start has no log yet: the reason is for a person.
perl -MJSON::PP -ne 'eval { decode_json($_) } or /^saltern serve: / or print' /tmp/lines >/tmp/others
[[ ! -s /tmp/others ]] || fail "no other line: $(head /tmp/others)"

say "it is purged while it serves: no process, no unit and no link is left; the keys are"
apt-get purge --yes --quiet --quiet saltern </dev/null >/tmp/apt.log 2>&1 || fail "a purge: $(</tmp/apt.log)"
! pidof saltern || fail "no process"
[[ $(systemctl list-units --no-legend 'saltern*') == '' ]] || fail "no unit that is active or has failed: $(systemctl list-units --no-legend 'saltern*')"
[[ $(find /etc/systemd/system -xtype l -name 'saltern*') == '' ]] || fail "no link: $(find /etc/systemd/system -xtype l)"
[[ -e /var/lib/saltern/master.key && -e /etc/saltern/database-url ]] || fail "keys and passwords to stay"
[[ $(find /var/backups/saltern -name 'saltern-*.backup') != '' ]] || fail "backups to stay"

say "PostgreSQL is exchanged for another cluster by backup and restore"
apt-get install --quiet --quiet /packages/saltern.deb </dev/null >/tmp/apt.log 2>&1 || fail "it to be installed: $(</tmp/apt.log)"
set_up SALTERN_SALT_PREFIX example.notes:
systemctl enable --now saltern saltern-backup.timer 2>/dev/null
pg_createcluster 15 next >/dev/null
rm /var/backups/saltern/*
# shellcheck disable=SC2016  # the variable is for the block
handbook_block 'Upgrade PostgreSQL 1' | sed 's/17 main/15 next/; s|17/main|15/next|; /saltern-admin restore/i\
set -- /var/backups/saltern/*.backup
s|/var/backups/saltern/saltern-20261123T070000Z.backup|$1|' >/tmp/block
# shellcheck source=/dev/null
source /tmp/block >/tmp/typed || fail "each command to succeed: $(</tmp/typed)"
port=8443
log_in

say "a new machine becomes the installation again, from the archives"
systemctl start saltern-backup.service
systemctl disable --now saltern saltern-backup.timer 2>/dev/null
apt-get purge --quiet --quiet --yes saltern </dev/null >/dev/null 2>&1
pg_dropcluster --stop 15 next
pg_createcluster 15 main --start >/dev/null
rm -r /etc/saltern /var/lib/saltern
latest() { find "$1" -name "$2" | sort | tail -n 1; }
handbook_block 'Restore on a new machine 1' | sed "s|\./saltern_[^ ]*|/packages/saltern.deb|; s/^apt-get install/& --quiet --quiet/
    s|/var/backups/saltern-keys/[^ ]*|$(latest /var/backups/saltern-keys '*.tar')|; s|/var/backups/saltern/[^ ]*tar|$(latest /var/backups/saltern '*.tar')|
    s|/var/backups/saltern/[^ ]*backup|$(latest /var/backups/saltern '*.backup')|" >/tmp/block
# shellcheck source=/dev/null
source /tmp/block </dev/null >/tmp/typed 2>&1 || fail "each command to succeed: $(</tmp/typed)"
log_in
say "the package has lived under systemd"

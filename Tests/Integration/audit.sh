#!/usr/bin/env bash
# The audit log: this program and another one detect every change of it.
# shellcheck source=Tests/Integration/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

start_own_server SALTERN_RATE_LIMITS=off

verify() { run_command "$1" audit verify "${@:2}"; }

scenario "every act leaves a row, in the name of who did it"
verify 0
says '0 rows'
register ada
saltern account lock "$userid" --actor 'Grace Hopper' >/dev/null
saltern account unlock "$userid" >/dev/null
saltern account set-plan "$userid" pro >/dev/null
saltern plan set pro --shares 1001 >/dev/null
saltern invite create --count 2 >/dev/null
log_in
saltern account end-sessions "$userid" >/dev/null
log_in
request DELETE /v1/account "$(proof)"
expect_status 204
list=$(saltern audit list --json)
[[ $(jq --compact-output '[.entries[].action] | reverse' <<<"$list") == \
    '["account_locked","account_unlocked","plan_assigned","plan_changed","invite_created","invite_created","sessions_ended","account_deleted"]' ]] ||
    fail "the acts in order: $list"
[[ $(jq --raw-output '.entries[-1].actor' <<<"$list") == 'Grace Hopper' ]] || fail "who locked: $list"
[[ $(jq --raw-output '.entries[-2].actor' <<<"$list") == "${SUDO_USER:-$(id --user --name)}" ]] || fail "who unlocked: $list"
[[ $(jq --raw-output '.entries[0] | .actor + " " + .accountId' <<<"$list") == "account $account_id" ]] || fail "who deleted: $list"
if grep --quiet --fixed-strings "$userid" <<<"$list"; then fail "no userid in the audit log"; fi
verify 0
says '8 rows'
head=$(sed -n 's/^head //p' <<<"$said")

scenario "another program finds the same hashes"
query "SELECT json_agg(json_build_object(
    'sequence', sequence, 'time', (extract(epoch FROM occurred_at) * 1000000)::bigint, 'actor', actor, 'action', action,
    'target', target_account, 'detail', detail, 'hash', encode(hash, 'hex')) ORDER BY sequence)
    FROM saltern.audit_log" >"$work/log.json"
python3 - "$work/log.json" >"$work/head" <<'PYTHON'
import hashlib, json, struct, sys, uuid

def text(value):
    return struct.pack(">i", -1) if value is None else struct.pack(">i", len(value.encode())) + value.encode()

previous = bytes(32)
for row in json.load(open(sys.argv[1])):
    target = b"\1" + uuid.UUID(row["target"]).bytes if row["target"] else b"\0"
    message = previous + struct.pack(">qq", row["sequence"], row["time"] - 946_684_800_000_000)
    message += text(row["actor"]) + text(row["action"]) + target + text(row["detail"])
    previous = hashlib.sha256(message).digest()
    assert previous.hex() == row["hash"], row
print(f"{row['sequence']}:{previous.hex()}")
PYTHON
[[ $(cat "$work/head") == "$head" ]] || fail "the head $head, not $(cat "$work/head")"

scenario "a noted head is in the chain still, when more has happened"
saltern invite create >/dev/null
verify 0 --expect "$head"
verify 1 --expect "8:$(openssl rand -hex 32)"
says 'row 8 does not match the noted head'
verify 1 --expect "99:$(openssl rand -hex 32)"
says 'row 10 is missing'

# tampered SEQUENCE SQL: after the statement verify must name this row. Restores the log afterwards.
tampered() {
    query "CREATE TABLE public.kept_log AS TABLE saltern.audit_log; CREATE TABLE public.kept_head AS TABLE saltern.audit_head"
    query "$2"
    verify 1
    says "row $1 "
    query "TRUNCATE saltern.audit_log, saltern.audit_head; INSERT INTO saltern.audit_log TABLE public.kept_log;
        INSERT INTO saltern.audit_head TABLE public.kept_head; DROP TABLE public.kept_log, public.kept_head"
    verify 0 --expect "$head"
}

scenario "whatever is changed, removed, inserted or moved is found, and where"
tampered 3 "UPDATE saltern.audit_log SET actor = 'nobody' WHERE sequence = 3"
tampered 5 "DELETE FROM saltern.audit_log WHERE sequence = 5"
tampered 9 "DELETE FROM saltern.audit_log WHERE sequence = 9"
tampered 1 "TRUNCATE saltern.audit_log"
tampered 10 "INSERT INTO saltern.audit_log SELECT 10, now(), 'x', 'x', NULL, NULL, hash, sha256('x') FROM saltern.audit_log WHERE sequence = 9"
tampered 2 "UPDATE saltern.audit_log SET sequence = 100 WHERE sequence = 2; UPDATE saltern.audit_log SET sequence = 2
    WHERE sequence = 6; UPDATE saltern.audit_log SET sequence = 6 WHERE sequence = 100"

scenario "a chain made anew is whole, and not the one that was noted"
query "TRUNCATE saltern.audit_log; UPDATE saltern.audit_head SET sequence = 0, hash = decode(repeat('00', 32), 'hex')"
saltern invite create --count 9 >/dev/null
verify 0
verify 1 --expect "$head"

scenario "the server's role can append, and nothing else"
for sql in 'DELETE FROM saltern.audit_log' "UPDATE saltern.audit_log SET actor = 'x'" 'DELETE FROM saltern.audit_head'; do
    if psql --no-psqlrc --quiet --command "$sql" "$(server_setting SALTERN_DATABASE_URL)" >"$work/refusal" 2>&1; then
        fail "the database to refuse: $sql"
    fi
done

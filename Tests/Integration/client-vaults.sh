#!/usr/bin/env bash
# Shared vaults with saltern-client: every block of docs/shared-vaults.md runs, and three people found, invite, join, write,
# lower, remove, hand over and delete.
# shellcheck source=Tests/Integration/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

umask 077
require_client
echo 'correct horse battery staple' >"$work/password"

scenario "every block of docs/shared-vaults.md runs"
extract_walk docs/shared-vaults.md "s|ada@example.org|$(unique ada)|; s|bob@example.org|$(unique bob)|"
run_walk 'words for the inviter: ' 'Buy salt.' 'sent: cake.txt' 'Bob is removed from household'

for name in ada bob carol; do
    eval "$name() { device $name \"\$@\" </dev/null; }"
    unique "$name" >"$work/$name-userid"
    device "$name" register --server "$SALTERN_TEST_URL" --userid "$(<"$work/$name-userid")" --certificate "$certificate" \
        --device "$name" --password-file "$work/password"
    expect_status 0
done
# person NAME: the id of a member, in the list that was printed last.
person() { json ".members[] | select(.name == \"$1\") | .id"; }
# invite ROLE NAME [OPTION…]: fills link and code.
invite() {
    ada vault invite household --role "$1" --label "$2" --json "${@:3}"
    expect_status 0
    json .link >"$work/link"
    json '.code // empty' >"$work/code"
}
# join NAME PERSON
join() {
    local code=()
    [[ ! -s $work/code ]] || code=(--code-file "$work/code")
    device "$1" vault join --as "$2" --link-file "$work/link" "${code[@]}" --json </dev/null
}

scenario "an owner founds a vault, and an invitation with a code admits one person"
ada vault list --json
expect_json '.vaults | length' 0
ada vault create household --as Ada --json
expect_status 0
vault=$(json .id)
invite writer Bob
[[ $(<"$work/link") =~ ^https://.*/j/[0-9A-Za-z]{22}#2[0-9A-Za-z]{44}$ ]] || fail "a link"
[[ $(wc --words <"$work/code") == 6 ]] || fail "a code of six words"
bob vault preview --link-file "$work/link" --code-file "$work/code" --json
expect_status 0
expect_json '[.id, .name, .inviter, .role, .members] | tostring' "[\"$vault\",\"household\",\"Ada\",\"writer\",1]"
echo 'abandon abandon abandon abandon abandon zoo' >"$work/wrong"
bob vault join --as Bob --link-file "$work/link" --code-file "$work/wrong" --json
expect_error 77 wrong_code
echo 'salt salt salt' >"$work/wrong"
bob vault join --as Bob --link-file "$work/link" --code-file "$work/wrong" --json
expect_error 65 malformed_code
join bob Bob
expect_status 0
expect_json '[.name, .role, (.words | length)] | tostring' '["household","writer",4]'
spoken=$(json '.words | join(" ")')
join carol Carol
expect_error 77 wrong_code
ada vault members household --json
expect_json '[.members[] | [.name, .role, .owner, .own, .label]] | tostring' \
    '[["Ada","manager",true,true,null],["Bob","writer",false,false,"Bob"]]'
expect_json '.members[1].words | join(" ")' "$spoken"
expect_json '.words | length' 12

scenario "a reader reads, and cannot write or manage"
invite reader Carol --no-code
[[ ! -s $work/code ]] || fail "no code"
carol vault preview --link-file "$work/link" --code-file "$work/link" --json
expect_error 64 usage
join carol Carol
expect_status 0
join bob Robert
expect_error 66 invitation_gone
device ada put --vault household --title list --json <<<'Buy salt.'
expect_status 0
ada sync --json
expect_status 0
expect_json '.vaults[0].sent > 0' true
carol sync --json
expect_status 0
carol get list --vault household
[[ $body == 'Buy salt.' ]] || fail "the item"
carol list --json
expect_json '.items | length' 0
device carol put --item list --vault household --json <<<'Buy nothing.'
expect_error 77 not_permitted
carol vault invite household --json
expect_error 77 not_permitted
carol vault rotate household --json
expect_error 77 not_permitted

scenario "a folder of a vault keeps both versions, with the name of the person"
for name in ada bob; do mkdir -- "$work/$name-files"; done
echo 'Two eggs.' >"$work/ada-files/cake.txt"
ada sync "$work/ada-files" --vault household
expect_status 0
bob sync "$work/bob-files" --vault household
expect_status 0
echo 'Three eggs.' >"$work/ada-files/cake.txt"
echo 'Four eggs.' >"$work/bob-files/cake.txt"
ada sync "$work/ada-files" --vault household
bob sync "$work/bob-files" --vault household
expect_status 2
compgen -G "$work/bob-files/cake (conflict, *" >/dev/null || fail "both versions: $(ls "$work/bob-files")"

scenario "a lowered writer stops writing, and a removed one receives nothing more"
ada vault role household Bob reader --json
expect_status 0
bob sync
device bob put --vault household --title late --json <<<'Late.'
expect_error 77 not_permitted
ada vault remove household Bob --json
expect_status 0
device ada put --vault household --title secret --json <<<'Surprise party.'
ada sync
expect_status 0
bob sync --json
expect_json '[.vaults[0].problems[].kind] | index("ended") != null' true
bob list --vault household --json
expect_json '[.items[].title] | index("secret")' null
carol sync
carol get secret --vault household
[[ $body == 'Surprise party.' ]] || fail "the later item"

scenario "a log-in ends with the status of a sync when a vault needs attention"
bob login --password-file "$work/password" --json
expect_status 2
expect_json '[.vaults[0].problems[].kind] | index("ended") != null' true

scenario "invitations are listed and revoked"
invite reader Dora --expires 12h --uses 2
ada vault invitations household --json
expect_json '[.invitations[] | [.label, .role, .uses, .joins, .needsCode]] | tostring' '[["Dora","reader",2,0,true]]'
ada vault revoke household Dora --json
expect_status 0
join bob Bob
expect_error 77 wrong_code

scenario "the owner hands over to a manager, and only then can leave"
ada vault leave household --yes --json
expect_error 1 owner_protected
ada vault role household Carol manager
expect_status 0
carol vault accept household --json
expect_error 66 no_offer
ada vault hand-over household Carol
expect_status 0
carol vault accept household --json
expect_status 0
ada vault leave household --yes --forget
expect_status 0
ada vault list --json
expect_json '.vaults | length' 0
carol vault list --json
expect_json '.vaults[0].owner' true

scenario "a vault that was put into is not left before its changes are sent"
carol vault invite household --role writer --label Bob --no-code --json
expect_status 0
json .link >"$work/link"
: >"$work/code"
join bob Bob
expect_status 0
device bob put --vault household --title offline --json <<<'Not sent yet.'
expect_status 0
bob status --json
expect_json '[.vaults[] | select(.role) | .unsent] | tostring' '[1]'
waiting=$(json '.unsent + ([.vaults[].unsent] | add)')
bob unlock --json
expect_status 0
expect_json .unsent "$waiting"
bob vault leave household --yes --json
expect_status 0
carol sync --json
carol get offline --vault household
[[ $body == 'Not sent yet.' ]] || fail "the item that was sent before the member left"

scenario "a manager lets edits count that no device of a manager had before their writer left"
carol vault invite household --role writer --label Robin --no-code --json
expect_status 0
json .link >"$work/link"
: >"$work/code"
join bob Robin
expect_status 0
device bob put --vault household --title farewell --json <<<'Goodbye.'
expect_status 0
bob vault leave household --yes --json
expect_status 0
bob sync
expect_status 0
[[ $body == *'you have left the vault'* ]] || fail "the vault that the account has left: $body"
bob vault list --json
expect_status 0
expect_json '[.vaults[] | [.left, .problems[].kind]] | tostring' '[[true,"ended"]]'
tablet() { device tablet "$@" </dev/null; }
tablet login --server "$SALTERN_TEST_URL" --userid "$(<"$work/carol-userid")" --certificate "$certificate" --device tablet \
    --password-file "$work/password"
tablet sync
tablet get farewell --vault household --json
expect_error 66 not_found
tablet vault members household --json
robin=$(json '.unsealed[] | select(.name == "Robin") | .id')
[[ -n $robin ]] || fail "a writer whose edits wait"
tablet vault seal household Zoe --json
expect_error 66 not_found
tablet vault seal household "$robin" --json
[[ $status != 0 ]] || fail "a question"
tablet vault seal household "$robin" --yes --json
expect_status 0
expect_json '[.sealed, .edits, .unseen] | tostring' "[\"$robin\",1,1]"
tablet sync
tablet get farewell --vault household
[[ $body == 'Goodbye.' ]] || fail "the item of the writer that has left"
tablet vault seal household "$robin" --yes --json
expect_error 66 not_found

scenario "an account that owns a vault is deleted with it, or not at all"
device dora register --server "$SALTERN_TEST_URL" --userid "$(unique dora)" --certificate "$certificate" --device dora \
    --password-file "$work/password"
expect_status 0
device dora vault create allotment --as Dora --json </dev/null
expect_status 0
device dora sync --json </dev/null
expect_status 0
device dora leave --yes --password-file "$work/password" --json </dev/null
expect_error 1 owns_vaults
device dora leave --yes --delete-vaults --discard-unsent --password-file "$work/password" --json </dev/null
expect_status 0

scenario "an export of everything has a file for the account and each vault"
carol export "$work/all" --all-vaults --json
expect_status 0
expect_json '[.files[] | .name] | tostring' '[null,"household"]'
expect_json '.files[1].items.documents > 0' true
[[ $(stat --format %a "$work/all") == 700 ]] || fail "a folder for the user alone"
while read -r file; do [[ $(stat --format %a "$file") == 600 ]] || fail "a file for the user alone"; done < <(json '.files[].file')
carol export "$work/all" --all-vaults --json
expect_error 73 file_exists

scenario "a vault is exported, imported into another one, and deleted"
carol export "$work/household.ndjson" --vault household
expect_status 0
carol vault create home --as Carol
carol import "$work/household.ndjson" --vault home
expect_status 0
carol get secret --vault home
[[ $body == 'Surprise party.' ]] || fail "the imported item"
carol vault delete household --yes --json
expect_status 0
carol list --vault household --json
expect_error 66 not_found

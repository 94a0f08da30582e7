#!/usr/bin/env bash
# A userid is salt, so a name must have the same bytes everywhere: in Python, in JavaScript and on a live server, as
# docs/protocol.md defines it (and in Swift, by UseridTests), for the examples in userids.json.
# shellcheck source=Tests/Integration/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=scripts/lib/packages.sh
source "$repository/scripts/lib/packages.sh"

ensure_packages nodejs python3 jq

examples=$repository/Tests/Integration/userids.json
jq --compact-output '.[] | .canonical' "$examples" >"$work/expected"
(($(wc --lines <"$work/expected") >= 40)) || fail "forty examples"

scenario "Python has the canonical forms of the document"
/usr/bin/python3 "$repository/Tests/Integration/userids.py" "$examples" >"$work/python"
diff "$work/expected" <(jq --compact-output . "$work/python") || fail "Python to agree"

scenario "so has JavaScript"
node "$repository/Tests/Integration/userids.mjs" "$examples" >"$work/javascript"
diff "$work/expected" <(jq --compact-output . "$work/javascript") || fail "JavaScript to agree"

scenario "and a live server, which says each to whoever asks"
jq --compact-output '.[] | {userid: .text}' "$examples" | while IFS= read -r question; do
    request POST /v1/kdf "$question"
    case $status in
        200) jq --compact-output .userid <<<"$question" ;;
        422) jq --compact-output '.canonical' <<<"$body" ;;
        *) fail "200 or 422 for $question, which is $status" ;;
    esac
done >"$work/server"
diff "$work/expected" "$work/server" || fail "the server to agree"

#!/usr/bin/env bash
# The vectors of docs/protocol.md, computed with openssl: reference values for the tests of clients.
# shellcheck source=Tests/Integration/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=scripts/lib/python.sh
source "$repository/scripts/lib/python.sh"

vector_userid=robnapier@gmail.com
vector_salt=com.example.MyGreatSite:$vector_userid

expect_vector() {
    local key
    key=$(stretch 'S3kr3t!' "$vector_salt" "$1")
    [[ $(openssl base64 -d -A <<<"$key" | hex) == "$2" ]] || fail "the key with $1 iterations to be $2"
    [[ $(openssl base64 -d -A <<<"$key" | openssl dgst -sha256 -binary | hex) == "$3" ]] || fail "the verifier to be $3"
    grep --quiet --fixed-strings "$2" "$repository/docs/protocol.md" || fail "docs/protocol.md to name the key $2"
    grep --quiet --fixed-strings "$3" "$repository/docs/protocol.md" || fail "docs/protocol.md to name the verifier $3"
}

scenario "every step of a client, in Python, as the kit has made it: both keys, item, keyring, recovery code, share"
ensure_python_tools
"$repository/.venv/bin/python" "$repository/Tests/Integration/client_vectors.py"

scenario "shared vaults: invitations, keys, the log with valid and rejected entries, edits, in Python"
"$repository/.venv/bin/python" "$repository/Tests/Integration/vault_vectors.py"

scenario "10,000 iterations"
expect_vector 10000 f68a328661383beb161e7fc403de2d1507ee84d670d5064d508991a240853ded \
    8b782e244226b07867b3f794c07b5686d613dfde498f125b777ff1e0c13b0021

scenario "600,000 iterations"
expect_vector 600000 de9e20b2f0243e88b94ba524b68c65b284fd1820259867ffe62d7c2429a17853 \
    7ddb5ccada4b07c5511497f2813c93adb026aa58c58d98800ce2fe29f1022c8c

scenario "a longer output begins with the password key, so its second block can be a key of the client's own"
longer=$(openssl kdf -keylen 64 -kdfopt digest:SHA256 -kdfopt pass:'S3kr3t!' -kdfopt "salt:$vector_salt" -kdfopt iter:10000 \
    -binary PBKDF2 | head --bytes 32 | hex)
[[ $longer == f68a328661383beb161e7fc403de2d1507ee84d670d5064d508991a240853ded ]] || fail "the first 32 of 64 bytes"

scenario "the server stores the verifier and nothing else of it"
userid=$(unique robnapier)
password_key=$(stretch 'S3kr3t!' "localhost.saltern:$userid")
verifier=$(openssl base64 -d -A <<<"$password_key" | openssl dgst -sha256 -binary | hex)
request POST /v1/accounts "{\"userid\":\"$userid\",\"passwordKey\":\"$password_key\",\"kdf\":{\"iterations\":600000}}"
expect_status 201
stored=$(query "SELECT encode(verifier, 'hex') FROM saltern.logins WHERE userid = '$userid'")
[[ $stored == "$verifier" ]] || fail "the stored verifier to be $verifier, which is $stored"

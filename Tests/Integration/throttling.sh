#!/usr/bin/env bash
# Rate limits delay frequent requests, delay guesses longer, and do not delay known devices.
# shellcheck source=Tests/Integration/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

metrics=127.0.0.1:$(free_port)
start_own_server SALTERN_RATE_LIMITS=lookup=3/0.2,login=100/100 SALTERN_TRUSTED_PROXIES=127.0.0.1,10.0.0.0/8 \
    SALTERN_METRICS_LISTEN="$metrics"

# look_up FORWARDED-FOR: asks for KDF parameters as the proxy on this machine would.
look_up() { request POST /v1/kdf '{"userid":"ada@example.org"}' --header "X-Forwarded-For: $1"; }

# guess USERID: a log-in with a wrong key.
guess() { request POST /v1/sessions "{\"userid\":\"$1\",\"passwordKey\":\"$(random_base64 32)\"}"; }

scenario "an address that asks too often is told when to come back, and then may"
token=
# look_up_in_vain FORWARDED-FOR: until there is no token left; on a slow machine some may have come meanwhile.
look_up_in_vain() {
    local _
    for _ in {1..30}; do
        look_up "$1"
        [[ $status == 200 ]] || break
    done
    expect_problem 429 rate_limited
}
for _ in 1 2 3; do
    look_up 192.0.2.1
    expect_status 200
done
look_up_in_vain 192.0.2.1
sleep "$(header retry-after)"
look_up 192.0.2.1
expect_status 200

scenario "behind a proxy each client has a bucket, an IPv6 client one for its network"
for host in 1 2 3; do
    look_up "192.0.2.1, 2001:db8:1:2::$host, 10.0.0.7"
    expect_status 200
done
look_up_in_vain 2001:db8:1:2:ffff::1
look_up 2001:db8:1:3::1
expect_status 200

scenario "nobody gets another bucket by inventing addresses"
for number in {1..30}; do
    look_up "203.0.113.$number, nonsense, 192.0.2.77"
    [[ $status == 200 ]] || break
done
expect_problem 429 rate_limited

scenario "from the fifth wrong key on a guess is not looked at for a while, whether there is such a userid or not"
register ada
request POST /v1/sessions "{\"userid\":\"$userid\",\"passwordKey\":\"$password_key\"}"
device=$(json .deviceToken)
credentials="\"userid\":\"$userid\",\"passwordKey\":\"$password_key\""
kept=$token
token=
for name in "$userid" "$(unique nobody)"; do
    for _ in 1 2 3 4 5; do
        guess "$name"
        expect_problem 401 wrong_credentials
    done
    # On a slow machine the first delays may be over before the next guess comes.
    for _ in 1 2 3 4; do
        guess "$name"
        [[ $status == 401 ]] || break
    done
    expect_problem 429 too_many_attempts
    (($(header retry-after) <= 8)) || fail "a short delay"
done

scenario "a known device is let in meanwhile, a stranger with the right key after the delay"
for _ in 1 2 3; do
    guess "$userid"
    request POST /v1/sessions "{$credentials,\"device\":{\"token\":\"$device\"}}"
    expect_status 201
    device=$(json .deviceToken)
done
request POST /v1/sessions "{$credentials}"
if [[ $status != 201 ]]; then
    expect_problem 429 too_many_attempts
    sleep "$(header retry-after)"
    request POST /v1/sessions "{$credentials}"
fi
expect_status 201

scenario "many tokens are no more than sixteen devices, and after a new password one"
devices=()
for _ in $(seq 40); do
    request POST /v1/sessions "{$credentials,\"device\":{\"token\":\"$device\"}}"
    expect_status 201
    request POST /v1/sessions "{$credentials}"
    # Strangers may have to wait.
    [[ $status == 201 ]] && devices+=("$(json .deviceToken)")
done
# checked_within SECONDS: how many guesses of a device are checked in this time at most: five at once, one after each delay of
# 1, 2, 4 … 60 s, and one more.
checked_within() {
    local left=$1 count=6 delay=1
    while ((left >= delay)); do
        left=$((left - delay)) count=$((count + 1)) delay=$((delay < 32 ? 2 * delay : 60))
    done
    echo "$count"
}
# looks: guesses with each of the tokens, three times, and counts the checked ones.
looks() {
    local looked=0 token
    for _ in 1 2 3; do
        for token in "${devices[@]}"; do
            request POST /v1/sessions "{\"userid\":\"$userid\",\"passwordKey\":\"$(random_base64 32)\",
                \"device\":{\"token\":\"$token\"}}"
            if [[ $status == 401 ]]; then looked=$((looked + 1)); fi
        done
    done
    printf '%s' "$looked"
}
((${#devices[@]} >= 31)) || fail "31 tokens, not ${#devices[@]}"
begun=$SECONDS
looked=$(looks)
# Five each at once, and a few more while the delays are short.
bound=$(checked_within $((SECONDS - begun)))
((looked <= 16 * (bound > 9 ? bound : 9))) || fail "guesses that were looked at: $looked of $((${#devices[@]} * 3))"
token=$kept
change="\"currentPasswordKey\":\"$password_key\",\"passwordKey\":\"$(random_base64 32)\",\"kdf\":{\"iterations\":600000}"
while request PUT /v1/account/credential "{$change}" && [[ $status == 429 ]]; do sleep "$(header retry-after)"; done
expect_status 200
device=$(json .deviceToken)
token=
begun=$SECONDS
looked=$(looks)
bound=$(checked_within $((SECONDS - begun)))
((looked <= (bound > 12 ? bound : 12))) || fail "guesses that were looked at after the change: $looked"

scenario "the person reads what happened"
token=$kept
request GET /v1/account/events
expect_status 200
expect_json '[.events[] | select(.kind == "failed_logins") | .count] | add >= 5' true
expect_json '[.events[] | select(.kind == "failed_logins") | .ongoing] | any' true
request PUT /v1/account/recovery "{\"currentPasswordKey\":\"$(random_base64 32)\",\"recoveryKey\":\"$(random_base64 32)\"}"
expect_problem 403 wrong_credentials
request GET /v1/account/events
expect_json '[.events[] | select(.kind == "failed_current_keys")][0].count' 1
request GET '/v1/account/events?limit=1'
first=$(json '.events[0].occurredAt')
request GET "/v1/account/events?limit=500&page=$(json .nextPage)"
expect_json "[.events[].occurredAt] | all(. <= \"$first\")" true

scenario "metrics count what was refused"
curl --silent --noproxy '*' "http://$metrics/metrics" >"$work/metrics"
grep --quiet '^saltern_rate_limited_requests_total{class="lookup"} [1-9]' "$work/metrics" ||
    fail "lookups that were refused: $(grep rate_limited "$work/metrics")"
stop_own_server

scenario "a proxy that nobody named is a client like any other"
start_own_server SALTERN_RATE_LIMITS=lookup=1/0.01
token=
look_up 192.0.2.1
expect_status 200
look_up 192.0.2.2
expect_problem 429 rate_limited
stop_own_server

scenario "without limits the log says so, and guesses are delayed all the same"
start_own_server SALTERN_RATE_LIMITS=off
grep --quiet rate_limits_off "$own_home/run.log" || fail "a warning in the log"
name=$(unique nobody)
for _ in 1 2 3 4 5; do guess "$name"; done
# The first delays may be over before the next guess comes.
for _ in 1 2 3 4 5; do
    guess "$name"
    [[ $status == 401 ]] || break
done
expect_problem 429 too_many_attempts
stop_own_server

scenario "figures that are none do not start"
result=0
with_settings SALTERN_RATE_LIMITS=login=0/1 SALTERN_TRUSTED_PROXIES=10.0.0.1/8 saltern serve >"$work/output" 2>&1 || result=$?
((result == 78)) || fail "exit status 78, not $result: $(cat "$work/output")"
grep --quiet 'SALTERN_RATE_LIMITS must be' "$work/output" || fail "a word about the figures: $(cat "$work/output")"
grep --quiet 'SALTERN_TRUSTED_PROXIES must be' "$work/output" || fail "a word about the proxies: $(cat "$work/output")"

#!/usr/bin/env bash
# The log continues a trace that began elsewhere.
# shellcheck source=Tests/Integration/lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

trace=4bf92f3577b34da6a3ce929d0e0e4736
span=00f067aa0ba902b7
secret=$(openssl rand -hex 8)

# line: the log's line of the last request.
line() { grep --fixed-strings "\"requestId\":\"$(header x-request-id)\"" "$SALTERN_TEST_HOME/run.log"; }

# logged VALUE: the line's member of the trace.
logged() {
    wait_until 180 line >"$work/line" || fail "a line in the log"
    jq --raw-output '[.traceId, .parentSpanId] | join("/")' "$work/line"
}

scenario "a request says which trace it belongs to, and its line has that"
request GET /v1/service '' --header "traceparent: 00-$trace-$span-01" --header "tracestate: vendor=$secret"
expect_status 200
[[ $(logged) == "$trace/$span" ]] || fail "trace and span: $(cat "$work/line")"
if grep --quiet "$secret" "$SALTERN_TEST_HOME/run.log"; then fail "nothing else of it"; fi
register ada
request GET /v1/account '' --header "traceparent: 00-$trace-$span-00"
expect_status 200
[[ $(logged) == "$trace/$span" ]] || fail "trace and span: $(cat "$work/line")"

scenario "so have those of refused requests"
for path in /v1/nowhere /v1/service?x=1 /v1/items/not-an-id; do
    request GET "$path" '' --header "TraceParent: 00-$trace-$span-01"
    [[ $(logged) == "$trace/$span" ]] || fail "trace and span: $(cat "$work/line")"
done
request DELETE /v1/service '' --header "traceparent: 00-$trace-$span-01"
expect_status 405
[[ $(logged) == "$trace/$span" ]] || fail "trace and span: $(cat "$work/line")"

scenario "what is not valid changes nothing"
for value in "00-$trace-0000000000000000-01" "ff-$trace-$span-01" "00-${trace^^}-$span-01" "$trace"; do
    request GET /v1/account '' --header "traceparent: $value"
    expect_status 200
    [[ $(logged) == / ]] || fail "nothing of a trace: $(cat "$work/line")"
done
request GET /v1/account
[[ $(logged) == / ]] || fail "nothing of a trace: $(cat "$work/line")"

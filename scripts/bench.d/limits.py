"""Log-ins of accounts at their plan's number of sessions, beside log-ins below it in the same run."""

import os
import statistics
from concurrent.futures import ThreadPoolExecutor

from accounts import write_list

# As many as the default plan allows.
LIMIT = 100
# A log-in at the bound leaves three quarters. Accounts begin at different points of the way back to the bound.
SPREAD = LIMIT // 4
UNLIMITED = 1_000_000_000
# How long each of 64 connections of the neighbours waits before a request, in milliseconds.
NEIGHBOURS_DELAY = 1_000
# Connections of the account that does nothing but log in.
BUSY_CONNECTIONS = 8


def measure(bench):
    """The rows of ended sessions are not vacuumed between the rounds at the bound: the last round shows whether cost rises."""
    bench.prepare()
    bench.sample_server("login", 1)
    seconds, rounds = bench.options.seconds, bench.options.rounds
    below = []
    for _ in range(rounds):
        bench.owner.settle()
        below.append(bench.sample_server("login", seconds))
    bench.owner.settle()
    bench.owner.limit_sessions(LIMIT)
    bench.owner.fill_sessions(LIMIT - SPREAD, SPREAD)
    try:
        at = [bench.sample_server("login", seconds) for _ in range(rounds + 2)]
        beside = neighbours(bench, seconds)
    finally:
        bench.owner.limit_sessions(UNLIMITED)
        bench.owner.settle()
    middle = median_cost(below)
    return {
        "below": figures(below),
        "atTheLimit": figures(at),
        "postgresRatio": round(median_cost(at) / middle, 2),
        "lastRoundPostgresRatio": round(at[-1].postgres_per_1000 / middle, 2),
        "oneAccount": beside,
    }


def neighbours(bench, seconds):
    """Quiet accounts, alone and beside one account that logs in as fast as it can."""
    one, others = (os.path.join(bench.options.work, f"{name}.tsv") for name in ("one", "others"))
    write_list(bench.accounts[:1], one)
    write_list(bench.accounts[1:], others)

    def quiet():
        return bench.sample_server("login", seconds, accounts=others, delay=NEIGHBOURS_DELAY).outcome

    alone = quiet()
    with ThreadPoolExecutor(1) as pool:
        busy = pool.submit(bench.sample_server, "login", seconds, accounts=one, connections=BUSY_CONNECTIONS)
        beside = quiet()
        logins = busy.result().outcome
    return {
        "requestsPerSecond": round(logins.per_second, 1),
        "neighboursP50Milliseconds": {"alone": round(alone.p50, 2), "beside": round(beside.p50, 2)},
        "neighboursP99Milliseconds": {"alone": round(alone.p99, 2), "beside": round(beside.p99, 2)},
    }


def median_cost(samples):
    return statistics.median(sample.postgres_per_1000 for sample in samples)


def figures(samples):
    return {
        "requestsPerSecond": round(statistics.median(s.outcome.per_second for s in samples), 1),
        "p99Milliseconds": round(statistics.median(s.outcome.p99 for s in samples), 2),
        "postgresCpuSecondsPer1000": round(median_cost(samples), 4),
    }


def print_table(results):
    below, at, one = results["below"], results["atTheLimit"], results["oneAccount"]
    for name, row in [("below it", below), ("at it", at)]:
        print(
            f"session limit: {row['requestsPerSecond']:,.0f} log-ins a second {name}, p99 {row['p99Milliseconds']:.1f} ms, "
            f"PostgreSQL's CPU for 1,000 {row['postgresCpuSecondsPer1000']:.3f} s"
        )
    print(
        f"session limit: at it PostgreSQL takes {results['postgresRatio']:.2f} times as much, "
        f"{results['lastRoundPostgresRatio']:.2f} times in the last round"
    )
    p99 = one["neighboursP99Milliseconds"]
    print(
        f"session limit: one account that does nothing but log in does so {one['requestsPerSecond']:,.0f} times a second; "
        f"its neighbours' p99 is {p99['beside']:.1f} ms, and {p99['alone']:.1f} ms without it"
    )

"""Measures a running server against pgbench and nginx, in turns, and prints a table or one JSON object.

Called by scripts/bench, which starts everything that this talks to.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass

import client
import limits
import loads
import plain
import processes
import streams
import sync
import vaults
from accounts import make_accounts, write_list
from database import Database
from statements import ENDPOINTS, Statements

HERE = os.path.dirname(os.path.abspath(__file__))
ROWS = ["login", "read", "write", "share", "token", "health", "handshake", "memory", "stream", "sync", "client", "limit", "vault"]
ACCOUNTS = 1000
IDLE_CONNECTIONS = 2000
# Rows that are measured at a tenth of their rate too, and with one connection at a time.
LOW_RATE_ROWS = ("login", "read", "write")


@dataclass
class Sample:
    outcome: loads.Outcome
    cpu_per_1000: float
    postgres_per_1000: float


class Bench:
    def __init__(self, options):
        self.options = options
        with open(os.path.join(options.home, "server.pid"), encoding="ascii") as file:
            self.server = int(file.read())
        with open(os.path.join(options.home, "postgres", "postmaster.pid"), encoding="ascii") as file:
            self.postgres = int(file.readline())
        self.port = int(options.url.rpartition(":")[2])
        self.owner = Database("psql", options.owner_database)
        self.list = os.path.join(options.work, "accounts.tsv")
        self.certificate = os.path.join(options.home, "tls", "certificate.pem")
        self.accounts = []
        self.is_prepared = False
        self.runs = 0
        self.resident = 0

    def make_accounts(self):
        if not self.accounts:
            self.accounts = make_accounts(self.port, self.certificate, ACCOUNTS)
        return self.accounts

    def prepare(self):
        if self.is_prepared:
            return
        self.is_prepared = True
        accounts = self.make_accounts()
        write_list(accounts, self.list)
        self.owner.prepare(accounts)
        statements = Statements(self.options.executable)
        for row in ENDPOINTS:
            for kind, text in [("script", statements.script(row, self.options.pipelined)), ("proof", statements.proof(row))]:
                with open(self.path(row, kind), "w", encoding="utf-8") as file:
                    file.write(text)
            loads.prove(self.options.pgbench, self.options.database, self.path(row, "proof"), ACCOUNTS)
        for row in plain.STATEMENTS:
            for kind, text in [("plain", plain.script(row)), ("plain-proof", plain.proof(row))]:
                with open(self.path(row, kind), "w", encoding="utf-8") as file:
                    file.write(text)
            loads.prove(self.options.pgbench, self.options.database, self.path(row, "plain-proof"), ACCOUNTS)

    def path(self, row, kind):
        return os.path.join(self.options.work, f"{row}.{kind}.sql")

    def sample_server(self, row, seconds, accounts=None, connections=64, delay=None):
        """One run against the server: what came of it and what it cost the server's process."""
        self.runs += 1
        before = processes.cpu_seconds(self.server)
        postgres = processes.family_cpu_seconds(self.postgres)
        if row in ("handshake", "resumed"):
            kind = "resumed" if row == "resumed" else "full"
            outcome = loads.handshakes(self.options.connections, self.port, seconds, "/v1/health/live", kind)
        else:
            script = os.path.join(HERE, "load.lua")
            outcome = loads.wrk(
                self.options.url, seconds, script, row, accounts or self.list, self.runs, connections, delay)
        used = processes.cpu_seconds(self.server) - before
        postgres = processes.family_cpu_seconds(self.postgres) - postgres
        if row in ("health", *ENDPOINTS):
            self.resident = max(self.resident, processes.resident_kilobytes(self.server))
        return Sample(outcome, used / outcome.done * 1000, postgres / outcome.done * 1000)

    def sample_plain(self, row, seconds, accounts=ACCOUNTS, clients=16):
        """One run of pgbench with the plain server's statements; it is no server, so that costs nothing."""
        before = processes.family_cpu_seconds(self.postgres)
        effects = self.owner.plain_effects(row)
        outcome = loads.pgbench(
            self.options.pgbench, self.options.database, seconds, self.path(row, "plain"), accounts, clients
        )
        used = processes.family_cpu_seconds(self.postgres) - before
        if effects is not None and self.owner.plain_effects(row) - effects < outcome.done:
            raise loads.BenchmarkError(f"{row}, plain SQL: {outcome.done} answered, fewer done")
        return Sample(outcome, 0, used / outcome.done * 1000)

    def sample_comparator(self, row, seconds):
        if row in ENDPOINTS:
            return loads.pgbench(
                self.options.pgbench, self.options.database, seconds, self.path(row, "script"), ACCOUNTS
            )
        if row == "health":
            script = os.path.join(HERE, "load.lua")
            return loads.wrk(f"https://localhost:{self.options.nginx_port}", seconds, script, row, self.list, 0)
        kind = "resumed" if row == "resumed" else "full"
        return loads.handshakes(self.options.connections, self.options.nginx_port, seconds, "/v1/health/live", kind)

    def with_proof(self, row, sample):
        """Takes a sample of a changing row from settled tables, and holds it against what the database then says."""
        self.owner.settle()
        before = self.owner.effects(row)
        taken = sample()
        outcome = taken.outcome if isinstance(taken, Sample) else taken
        if before is not None and self.owner.effects(row) - before < outcome.done:
            raise loads.BenchmarkError(f"{row}: {outcome.done} answered, fewer done")
        return taken

    def measure(self, row):
        """Server and comparator in turns; the medians."""
        say(f"{row}: ", end="")
        seconds, rounds = self.options.seconds, self.options.rounds
        prove = self.with_proof if row in ENDPOINTS else lambda _, sample: sample()
        prove(row, lambda: self.sample_server(row, 1))
        server, comparator, plainly = [], [], []
        for _ in range(rounds):
            server.append(prove(row, lambda: self.sample_server(row, seconds)))
            comparator.append(prove(row, lambda: self.sample_comparator(row, seconds)))
            if row in plain.STATEMENTS:
                self.owner.settle()
                plainly.append(self.sample_plain(row, seconds))
            ours, theirs = server[-1].outcome.per_second, comparator[-1].per_second
            say(f"{ours:.0f}/{theirs:.0f} ", end="")
        say()
        rate = statistics.median(s.outcome.per_second for s in server)
        other = statistics.median(c.per_second for c in comparator)
        result = {
            "ratio": round(rate / other, 3),
            **server_medians(server),
            "comparatorPerSecond": round(other, 1),
        }
        if row in ENDPOINTS:
            result["postgresCpuSecondsPer1000"] = postgres_median(server)
        if plainly:
            result |= plain_medians(plainly)
            result["plainRatio"] = round(rate / statistics.median(s.outcome.per_second for s in plainly), 3)
        if row in LOW_RATE_ROWS:
            result["atATenth"] = self.measure_at(row, rate / 10)
            result["alone"] = self.measure_alone(row)
        if row == "resumed":
            result["resumedShare"] = round(
                sum(s.outcome.resumed for s in server) / sum(s.outcome.done for s in server), 3
            )
        return result

    def measure_at(self, row, rate):
        """Sixty-four connections that wait before each request, so that as many come a second."""
        delay = round(64 / rate * 1000)
        quiet = []
        for _ in range(self.options.rounds):
            self.owner.settle()
            quiet.append(self.sample_server(row, self.options.seconds, delay=delay))
        medians = server_medians(quiet)
        return {figure: medians[figure] for figure in ("requestsPerSecond", "p50Milliseconds", "p99Milliseconds")}

    def measure_alone(self, row):
        """One connection, so that nothing is shared: neither a commit nor a flush."""
        ours, plainly = [], []
        for _ in range(self.options.rounds):
            self.owner.settle()
            ours.append(self.sample_server(row, self.options.seconds, connections=1))
            self.owner.settle()
            plainly.append(self.sample_plain(row, self.options.seconds, clients=1))
        return {
            **server_medians(ours), "postgresCpuSecondsPer1000": postgres_median(ours), **plain_medians(plainly),
        }

    def measure_memory(self):
        """Resident memory under load, and what each of many idle connections adds."""
        if self.resident == 0:
            self.sample_server("health", self.options.seconds)
        # Warm first, so that what the server keeps for reuse is not taken for a connection's.
        self.sample_idle(64)
        grown = self.sample_idle(IDLE_CONNECTIONS)
        return {
            "megabytesAt64Connections": round(self.resident / 1024, 1),
            "kilobytesPerIdleConnection": round(grown / IDLE_CONNECTIONS, 2),
        }

    def sample_idle(self, count):
        time.sleep(1)
        before = processes.resident_kilobytes(self.server)
        words = [self.options.connections, "idle", str(self.port), str(count), "/v1/health/live"]
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
            if holder.stdout.readline() != "open\n":
                raise loads.BenchmarkError("could not hold idle connections")
            time.sleep(1)
            during = processes.resident_kilobytes(self.server)
            holder.stdin.close()
        return during - before

    def measure_sync(self):
        """Batches, pages of changes, a hot account, and pages beside a million items."""
        self.prepare()
        return sync.Sync(self).measure(self.accounts)

    def measure_streams(self):
        """What live streams cost when nothing changes, over at least ten seconds: it is little."""
        accounts = self.make_accounts()
        return streams.measure(self.port, self.certificate, accounts, self.server, max(self.options.seconds, 10))

    def run(self):
        results = {}
        if any(row in ENDPOINTS for row in self.options.only):
            self.prepare()
        for row in ROWS:
            if row not in self.options.only:
                continue
            if row == "memory":
                results[row] = self.measure_memory()
            elif row == "stream":
                results[row] = self.measure_streams()
            elif row == "sync":
                results[row] = self.measure_sync()
            elif row == "client":
                results[row] = client.Client(self).measure()
            elif row == "limit":
                results[row] = limits.measure(self)
            elif row == "vault":
                results[row] = vaults.measure(self)
            else:
                results[row] = self.measure(row)
            if row == "handshake":
                results[row]["resumed"] = self.measure("resumed")
        return results


def server_medians(samples):
    return {
        "requestsPerSecond": round(statistics.median(s.outcome.per_second for s in samples), 1),
        "p50Milliseconds": round(statistics.median(s.outcome.p50 for s in samples), 3),
        "p99Milliseconds": round(statistics.median(s.outcome.p99 for s in samples), 3),
        "cpuSecondsPer1000": round(statistics.median(s.cpu_per_1000 for s in samples), 4),
    }


def postgres_median(samples):
    return round(statistics.median(s.postgres_per_1000 for s in samples), 4)


def plain_medians(samples):
    return {
        "plainPostgresCpuSecondsPer1000": postgres_median(samples),
        "plainRequestsPerSecond": round(statistics.median(s.outcome.per_second for s in samples), 1),
    }


def say(text="", end="\n"):
    print(text, end=end, file=sys.stderr, flush=True)


def postgres_cpu(line, who):
    cpu = line.get(f"{who}CpuSecondsPer1000")
    return "" if cpu is None else f"{cpu:.3f}"


def print_alone(alone):
    over = alone["postgresCpuSecondsPer1000"] / alone["plainPostgresCpuSecondsPer1000"]
    print(
        f"{'  alone':20}{alone['requestsPerSecond']:>11,.0f}{alone['p50Milliseconds']:>9.2f}{alone['p99Milliseconds']:>9.2f}"
        f"{alone['cpuSecondsPer1000']:>12.3f}{postgres_cpu(alone, 'postgres'):>12}   "
        f"{'plain SQL ' + postgres_cpu(alone, 'plainPostgres'):24}{over:>6.2f}"
    )


def print_table(results):
    comparators = {"login": "pgbench", "read": "pgbench", "write": "pgbench", "share": "pgbench", "token": "pgbench"}
    print(
        f"{'':20}{'requests/s':>11}{'p50 ms':>9}{'p99 ms':>9}{'CPU s/1000':>12}{'PostgreSQL':>12}   "
        f"{'compared with':24}{'ratio':>6}"
    )
    for row, r in results.items():
        if row in ("memory", "stream", "sync", "client", "limit", "vault"):
            continue
        lines = [(row, r)]
        if row == "handshake":
            lines = [("handshake, full", r), ("handshake, resumed", r["resumed"])]
        for name, line in lines:
            other = f"{comparators.get(row, 'nginx')} {line['comparatorPerSecond']:,.0f}/s"
            print(
                f"{name:20}{line['requestsPerSecond']:>11,.0f}{line['p50Milliseconds']:>9.2f}"
                f"{line['p99Milliseconds']:>9.2f}{line['cpuSecondsPer1000']:>12.3f}{postgres_cpu(line, 'postgres'):>12}   "
                f"{other:24}{line['ratio']:>6.2f}"
            )
            if "atATenth" in line:
                quiet = line["atATenth"]
                print(
                    f"{'  at a tenth':20}{quiet['requestsPerSecond']:>11,.0f}{quiet['p50Milliseconds']:>9.2f}"
                    f"{quiet['p99Milliseconds']:>9.2f}"
                )
            if "alone" in line:
                print_alone(line["alone"])
            if "plainRatio" in line:
                print(
                    f"{'  plain SQL':20}{line['plainRequestsPerSecond']:>11,.0f}{'':30}"
                    f"{postgres_cpu(line, 'plainPostgres'):>12}   {'Saltern over plain SQL':24}{line['plainRatio']:>6.2f}"
                )
    if "memory" in results:
        memory = results["memory"]
        print(
            f"memory: {memory['megabytesAt64Connections']} MB at 64 busy connections, "
            f"{memory['kilobytesPerIdleConnection']} kB for each idle one (of {IDLE_CONNECTIONS:,})"
        )
    if "stream" in results:
        r = results["stream"]
        print(
            f"stream: {r['streams']:,} live streams take {r['megabytes']} MB and {r['percentOfACoreWhenIdle']} % of a core "
            f"when nothing changes; a change is told within {r['medianMillisecondsToTell']} ms "
            f"(at most {r['maximumMillisecondsToTell']} ms)"
        )
    if "sync" in results:
        print_sync(results["sync"])
    if "client" in results:
        print_client(results["client"])
    if "limit" in results:
        limits.print_table(results["limit"])
    if "vault" in results:
        vaults.print_table(results["vault"])


def sync_cpu(r):
    text = ""
    if "postgresCpuSecondsPer1000" in r:
        text = f", CPU for 1,000 {r['cpuSecondsPer1000']:.2f} s, PostgreSQL's {r['postgresCpuSecondsPer1000']:.2f} s"
    if "plainRatio" in r:
        text += (
            f"; plain SQL {r['plainRequestsPerSecond']:,.0f} a second, {r['plainPostgresCpuSecondsPer1000']:.2f} s: "
            f"ratio {r['plainRatio']:.2f}"
        )
    return text


def print_sync(results):
    names = {
        "batchOf100": "batches of 100 items",
        "hotAccountWith16Writers": "writes to one account by 16 devices",
        "pageOf100": "pages of 100 changes",
    }
    for key, name in names.items():
        r = results[key]
        print(
            f"sync: {r['requestsPerSecond']:,.0f} {name} a second, p50 {r['p50Milliseconds']:.2f} ms, "
            f"p99 {r['p99Milliseconds']:.2f} ms{sync_cpu(r)}"
        )
    for size, pages in results["pageMillisecondsByItemsOfOthers"].items():
        print(
            f"sync: a page of 100 beside {int(size):,} items of others takes {pages['firstOfHistory']:.2f} ms at the "
            f"beginning of a history of {sync.HISTORY:,}, {pages['lastOfHistory']:.2f} ms at its end"
        )


def print_client(r):
    curl, memory = r["curl"], r["memory"]
    print(
        f"client: {r['items']:,} items of 1 KiB are sealed and stored in {r['secondsToSealAndStore']} s, sent in "
        f"{r['secondsToUpload']} s (curl, sealed already, one process each: {curl['secondsToUpload']} s, from "
        f"{curl['uploadsMeasured']:,}), fetched by another device in {r['secondsOfFirstSync']} s (curl, pages of 500 and not "
        f"opened: {curl['secondsOfFirstSync']} s), listed in {r['secondsToList']} s"
    )
    print(
        f"client: a file is in the other watched folder after {r['medianMillisecondsUntilSeen']} ms "
        f"(at most {r['maximumMillisecondsUntilSeen']} ms)"
    )
    peaks = ", ".join(f"{name} {megabytes} MB" for name, megabytes in memory["megabytes"].items())
    print(f"client: memory at {memory['items']:,} items: {peaks}")


def rows(text):
    chosen = text.split(",")
    for row in chosen:
        if row not in ROWS:
            raise argparse.ArgumentTypeError(f"{row} is none of {', '.join(ROWS)}")
    return chosen


def main():
    parser = argparse.ArgumentParser(prog="scripts/bench")
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    parser.add_argument("--only", type=rows, default=ROWS, help=f"some of {','.join(ROWS)}")
    parser.add_argument("--seconds", type=int, default=5, help="how long each run takes (default 5)")
    parser.add_argument("--rounds", type=int, default=3, help="how many runs of each, in turns (default 3)")
    parser.add_argument("--pipelined", action="store_true", help="let pgbench read in one round trip, as the server does")
    for name in ["url", "home", "executable", "client", "database", "owner-database", "pgbench", "connections", "nginx-port", "work"]:
        parser.add_argument(f"--{name}", required=True, help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.nginx_port = int(options.nginx_port)
    if not 1 <= options.seconds <= 60 or not 1 <= options.rounds <= 20:
        parser.error("--seconds goes from 1 to 60, --rounds from 1 to 20")
    try:
        results = Bench(options).run()
    except loads.BenchmarkError as error:
        raise SystemExit(f"bench: {error}") from error
    if options.json:
        print(json.dumps(results))
    else:
        print_table(results)
    if "vault" in results:
        try:
            vaults.check(results["vault"])
        except loads.BenchmarkError as error:
            raise SystemExit(f"bench: {error}") from error


main()

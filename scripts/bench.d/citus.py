"""The same load on one PostgreSQL and on a cluster of three nodes on this machine, in turns: what the detour costs.

Called by scripts/bench --only citus, which starts both servers and their databases.
"""

import argparse
import json
import os
import statistics
from dataclasses import dataclass

import loads
import processes
from accounts import make_accounts, write_list

HERE = os.path.dirname(os.path.abspath(__file__))
ROWS = ["read", "write", "login"]
ACCOUNTS = 200
CONNECTIONS = 8


@dataclass
class Sample:
    p50: float
    p99: float
    cpu_per_1000: float


class Side:
    """A server with its database."""

    def __init__(self, url, home, postmasters, work, name):
        self.url = url
        with open(os.path.join(home, "server.pid"), encoding="ascii") as file:
            self.server = int(file.read())
        self.nodes = []
        for path in postmasters:
            with open(path, encoding="ascii") as file:
                self.nodes.append(int(file.readline()))
        self.list = os.path.join(work, f"{name}.tsv")
        certificate = os.path.join(home, "tls", "certificate.pem")
        write_list(make_accounts(int(url.rpartition(":")[2]), certificate, ACCOUNTS), self.list)
        self.runs = 0

    def cpu(self):
        return processes.cpu_seconds(self.server) + sum(processes.family_cpu_seconds(node) for node in self.nodes)

    def sample(self, row, seconds):
        self.runs += 1
        before = self.cpu()
        outcome = loads.wrk(self.url, seconds, os.path.join(HERE, "load.lua"), row, self.list, self.runs, CONNECTIONS)
        return Sample(outcome.p50, outcome.p99, (self.cpu() - before) / outcome.done * 1000)


def measure(one, many, seconds, rounds):
    results = {}
    for row in ROWS:
        pairs = []
        one.sample(row, 1)
        many.sample(row, 1)
        for _ in range(rounds):
            pairs.append((one.sample(row, seconds), many.sample(row, seconds)))

        def median(side, member):
            return statistics.median(getattr(pair[side], member) for pair in pairs)

        results[row] = {}
        for member, name in [("p50", "p50Milliseconds"), ("p99", "p99Milliseconds"), ("cpu_per_1000", "cpuSecondsPer1000")]:
            alone, spread = median(0, member), median(1, member)
            results[row][name] = {"one": round(alone, 3), "cluster": round(spread, 3), "ratio": round(spread / alone, 2)}
    return results


def print_table(results):
    print(f"{CONNECTIONS} connections; one PostgreSQL, and a coordinator with two workers; server and database on this machine")
    print(f"{'':8}{'p50 ms':>20}{'p99 ms':>20}{'CPU s/1000':>20}   ratio of p50, CPU")
    for row, result in results.items():
        cells = "".join(
            f"{result[name]['one']:>10.3f}{result[name]['cluster']:>10.3f}"
            for name in ["p50Milliseconds", "p99Milliseconds", "cpuSecondsPer1000"]
        )
        print(f"{row:8}{cells}   {result['p50Milliseconds']['ratio']:.2f}, {result['cpuSecondsPer1000']['ratio']:.2f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    for name in ["one-url", "one-home", "cluster-url", "cluster-home", "cluster-directory", "work"]:
        parser.add_argument(f"--{name}", required=True)
    options, _ = parser.parse_known_args()
    one = Side(
        options.one_url, options.one_home, [os.path.join(options.one_home, "postgres", "postmaster.pid")], options.work, "one"
    )
    nodes = [os.path.join(options.cluster_directory, str(number), "postmaster.pid") for number in range(3)]
    many = Side(options.cluster_url, options.cluster_home, nodes, options.work, "cluster")
    results = measure(one, many, options.seconds, options.rounds)
    if options.json:
        print(json.dumps({"citus": results}))
    else:
        print_table(results)


main()

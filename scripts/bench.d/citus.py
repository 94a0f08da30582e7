"""The same load on one PostgreSQL and on a cluster of three nodes on this machine, through its coordinator and through a worker
that has half of the accounts, in turns: what the detour costs.

Called by scripts/bench --only citus, which starts the servers and their databases.
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
FIGURES = {"p50": "p50Milliseconds", "p99": "p99Milliseconds", "cpu_per_1000": "cpuSecondsPer1000"}


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
        write_list(make_accounts(int(url.rpartition(":")[2]), certificate, ACCOUNTS, name), self.list)
        self.runs = 0

    def cpu(self):
        return processes.cpu_seconds(self.server) + sum(processes.family_cpu_seconds(node) for node in self.nodes)

    def sample(self, row, seconds):
        self.runs += 1
        before = self.cpu()
        outcome = loads.wrk(self.url, seconds, os.path.join(HERE, "load.lua"), row, self.list, self.runs, CONNECTIONS)
        return Sample(outcome.p50, outcome.p99, (self.cpu() - before) / outcome.done * 1000)


def measure(sides, seconds, rounds):
    """The middle of each side, by row and figure; ratios are to the first side."""
    results = {}
    for row in ROWS:
        for side in sides.values():
            side.sample(row, 1)
        samples = {name: [] for name in sides}
        for _ in range(rounds):
            for name, side in sides.items():
                samples[name].append(side.sample(row, seconds))
        results[row] = {}
        for member, figure in FIGURES.items():
            middle = {name: statistics.median(getattr(sample, member) for sample in samples[name]) for name in sides}
            results[row][figure] = {
                name: {"value": round(value, 3), "ratio": round(value / middle["one"], 2)} for name, value in middle.items()
            }
    return results


def print_table(results):
    print(f"{CONNECTIONS} connections; one PostgreSQL, and three nodes through the coordinator and through a worker")
    for row, result in results.items():
        for figure, sides in result.items():
            cells = "".join(f"{name:>14} {side['value']:>8.3f} ({side['ratio']:.2f})" for name, side in sides.items())
            print(f"{row:8}{figure:20}{cells}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    for name in ["one-url", "one-home", "cluster-url", "cluster-home", "worker-url", "worker-home", "cluster-directory", "work"]:
        parser.add_argument(f"--{name}", required=True)
    options, _ = parser.parse_known_args()
    one = Side(
        options.one_url, options.one_home, [os.path.join(options.one_home, "postgres", "postmaster.pid")], options.work, "one"
    )
    nodes = [os.path.join(options.cluster_directory, str(number), "postmaster.pid") for number in range(3)]
    sides = {
        "one": one,
        "coordinator": Side(options.cluster_url, options.cluster_home, nodes, options.work, "coordinator"),
        "worker": Side(options.worker_url, options.worker_home, nodes, options.work, "worker"),
    }
    results = measure(sides, options.seconds, options.rounds)
    if options.json:
        print(json.dumps({"citus": results}))
    else:
        print_table(results)


main()

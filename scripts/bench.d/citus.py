"""The same load on one PostgreSQL and on a cluster of three nodes on this machine, in turns: through its coordinator, through a
worker that has half of the accounts, and through that worker for accounts that it has. What the detour costs, and what would be
left if every request were sent to the node that has its account.

Called by scripts/bench --only citus, which starts the servers and their databases.
"""

import argparse
import json
import os
import statistics
import subprocess

from side import Side

ROWS = ["read", "write", "login"]
CONNECTIONS = 8
FIGURES = {"p50": "p50Milliseconds", "p99": "p99Milliseconds", "cpu_per_1000": "cpuSecondsPer1000"}
# Of requests one after another: nothing waits for a core.
ALONE = "aloneP50Milliseconds"


class Node:
    """A node of the cluster, which knows whom it has."""

    LOOK = """
        CREATE TEMP TABLE login AS SELECT userid, account_id FROM saltern.logins;
        SELECT userid FROM login WHERE {port} = ALL (
            SELECT n.nodeport FROM pg_dist_placement p JOIN pg_dist_node n USING (groupid) WHERE p.shardid IN (
                get_shard_id_for_distribution_column('saltern.logins', login.userid),
                get_shard_id_for_distribution_column('saltern.accounts', login.account_id)))
    """

    def __init__(self, database, port):
        self.words = ["psql", "--no-psqlrc", "--quiet", "-At", "--command", self.LOOK.format(port=port), database]
        self.userids = None

    def has(self, userid):
        """Both the account and its log-in. Looked up once, after the accounts were made."""
        if self.userids is None:
            self.userids = set(subprocess.run(self.words, capture_output=True, text=True, check=True).stdout.split())
        return userid in self.userids


def measure(sides, seconds, rounds):
    """The middle of each side, by row and figure; ratios are to the first side."""
    results = {}
    for row in ROWS:
        for side in sides.values():
            side.sample(row, 1, CONNECTIONS)
        samples = {name: [] for name in sides}
        alone = {name: [] for name in sides}
        for _ in range(rounds):
            for name, side in sides.items():
                samples[name].append(side.sample(row, seconds, CONNECTIONS))
                alone[name].append(side.sample(row, seconds, 1).p50)
        figures = {
            figure: {name: statistics.median(getattr(sample, member) for sample in samples[name]) for name in sides}
            for member, figure in FIGURES.items()
        }
        figures[ALONE] = {name: statistics.median(alone[name]) for name in sides}
        results[row] = {
            figure: {
                name: {"value": round(value, 3), "ratio": round(value / middle["one"], 2)} for name, value in middle.items()
            }
            for figure, middle in figures.items()
        }
    return results


def print_table(results):
    print(f"{CONNECTIONS} connections; one PostgreSQL, and three nodes through the coordinator, through a worker, and at home: through it for those it has")
    for row, result in results.items():
        for figure, sides in result.items():
            cells = "".join(f"{name:>14} {side['value']:>8.3f} ({side['ratio']:.2f})" for name, side in sides.items())
            print(f"{row:8}{figure:20}{cells}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    for name in ["one-url", "one-home", "cluster-url", "cluster-home", "worker-url", "worker-home", "cluster-directory", "work",
                 "database"]:
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--worker-port", type=int, required=True)
    options, _ = parser.parse_known_args()
    one = Side(
        options.one_url, options.one_home, [os.path.join(options.one_home, "postgres", "postmaster.pid")], options.work, "one"
    )
    nodes = [os.path.join(options.cluster_directory, str(number), "postmaster.pid") for number in range(3)]
    sides = {
        "one": one,
        "coordinator": Side(options.cluster_url, options.cluster_home, nodes, options.work, "coordinator"),
        "worker": Side(options.worker_url, options.worker_home, nodes, options.work, "worker"),
        "at home": Side(
            options.worker_url, options.worker_home, nodes, options.work, "home",
            Node(options.database, options.worker_port).has,
        ),
    }
    results = measure(sides, options.seconds, options.rounds)
    if options.json:
        print(json.dumps({"citus": results}))
    else:
        print_table(results)


main()

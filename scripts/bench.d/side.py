"""A server with its database, as one of several that are measured in turns."""

import os
from dataclasses import dataclass

import loads
import processes
from accounts import make_accounts, write_list

HERE = os.path.dirname(os.path.abspath(__file__))
ACCOUNTS = 200


@dataclass
class Sample:
    per_second: float
    p50: float
    p99: float
    cpu_per_1000: float


class Side:
    """A server, and the PostgreSQL processes that work for it."""

    def __init__(self, url, home, postmasters, work, name, is_wanted=lambda userid: True):
        self.url = url
        with open(os.path.join(home, "server.pid"), encoding="ascii") as file:
            self.server = int(file.read())
        self.nodes = []
        for path in postmasters:
            with open(path, encoding="ascii") as file:
                self.nodes.append(int(file.readline()))
        self.list = os.path.join(work, f"{name}.tsv")
        certificate = os.path.join(home, "tls", "certificate.pem")
        accounts = make_accounts(int(url.rpartition(":")[2]), certificate, ACCOUNTS, name)
        write_list([account for account in accounts if is_wanted(account.userid)], self.list)
        self.runs = 0

    def cpu(self):
        return processes.cpu_seconds(self.server) + sum(processes.family_cpu_seconds(node) for node in self.nodes)

    def sample(self, row, seconds, connections, delay=None):
        self.runs += 1
        before = self.cpu()
        outcome = loads.wrk(
            self.url, seconds, os.path.join(HERE, "load.lua"), row, self.list, self.runs, connections, delay)
        cpu = (self.cpu() - before) / outcome.done * 1000
        return Sample(outcome.per_second, outcome.p50, outcome.p99, cpu)

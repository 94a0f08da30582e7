"""Runs one load generator once and says what came of it."""

import json
import re
import subprocess
from dataclasses import dataclass


class BenchmarkError(Exception):
    """A measurement that means nothing."""


@dataclass
class Outcome:
    per_second: float
    done: int
    p50: float
    p99: float
    resumed: int = 0


def _run(words, patience, **options):
    finished = subprocess.run(words, capture_output=True, text=True, timeout=patience, **options)
    if finished.returncode != 0:
        raise BenchmarkError(f"{words[0]} failed: {finished.stderr[-2000:]}{finished.stdout[-2000:]}")
    return finished.stdout


def _outcome(result):
    if result["done"] == 0 or result["failed"] or result.get("refused"):
        raise BenchmarkError(f"not every request succeeded: {result}")
    return Outcome(
        result["done"] / result["seconds"], result["done"], result["p50"], result["p99"], result.get("resumed", 0)
    )


def wrk(url, seconds, script, kind, accounts, run, connections=64, delay=None):
    """Two threads, each of whose connections may wait before each request, for `delay` milliseconds in the mean. Any reply
    that is not 2xx makes it invalid.
    """
    words = ["wrk", f"-t{min(connections, 2)}", f"-c{connections}", f"-d{seconds}s", "--latency", "-s", script, url, "--", kind, accounts, str(run % 10)]
    if delay is not None:
        words.append(str(delay))
    output = _run(words, seconds + 30)
    found = re.search(r"^RESULT (.*)$", output, re.MULTILINE)
    if not found:
        raise BenchmarkError(f"wrk printed no result: {output[-2000:]}")
    return _outcome(json.loads(found.group(1)))


def handshakes(program, port, seconds, path, kind):
    """New connections, sixty-four at a time, a request on each."""
    result = json.loads(_run([program, "handshakes", str(port), str(seconds), "64", path, kind], seconds + 30))
    outcome = _outcome(result)
    if kind == "full" and outcome.resumed:
        raise BenchmarkError(f"{outcome.resumed} handshakes were resumed that should have been full")
    return outcome


def pgbench(program, database, seconds, script, accounts, clients=16):
    """Two threads, prepared statements."""
    words = [program, "-n", "-M", "prepared", "-c", str(clients), "-j", str(min(clients, 2)), "-T", str(seconds), "-f", script]
    words += ["-D", f"accounts={accounts}", "-D", "started=0", database]
    output = _run(words, seconds + 30)
    done = re.search(r"number of transactions actually processed: (\d+)", output)
    failed = re.search(r"number of failed transactions: (\d+)", output)
    rate = re.search(r"tps = ([\d.]+)", output)
    latency = re.search(r"latency average = ([\d.]+) ms", output)
    if not (done and failed and rate and latency) or failed.group(1) != "0" or done.group(1) == "0":
        raise BenchmarkError(f"pgbench did not succeed: {output[-2000:]}")
    return Outcome(float(rate.group(1)), int(done.group(1)), float(latency.group(1)), float(latency.group(1)))


def prove(program, database, script, accounts):
    """Runs a script a few times to see that it succeeds."""
    words = [program, "-n", "-M", "prepared", "-c", "1", "-t", "20", "-f", script]
    _run([*words, "-D", f"accounts={accounts}", "-D", "started=0", database], 60)

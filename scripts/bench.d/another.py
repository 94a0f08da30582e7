"""Two builds of the server in turns, each with a PostgreSQL of its own: rates, and how long a request takes at the same low rate.

Called by scripts/bench --only another, which starts both.
"""

import argparse
import json
import os
import statistics

from side import Side

# Log-ins are last: they end the sessions that the others have.
ROWS = ["read", "write", "login"]
CONNECTIONS = 64
FIGURES = {
    "per_second": "requestsPerSecond", "p50": "p50Milliseconds", "p99": "p99Milliseconds", "cpu_per_1000": "cpuSecondsPer1000",
}


def turns(sides, row, seconds, rounds, delay=None):
    """The middle of each side's figures; ratios are to the other build."""
    samples = {name: [] for name in sides}
    for _ in range(rounds):
        for name, side in sides.items():
            samples[name].append(side.sample(row, seconds, CONNECTIONS, delay))
    results = {}
    for member, figure in FIGURES.items():
        middle = {name: statistics.median(getattr(sample, member) for sample in taken) for name, taken in samples.items()}
        results[figure] = {
            **{name: round(value, 3) for name, value in middle.items()}, "ratio": round(middle["this"] / middle["another"], 2)
        }
    return results


def measure(sides, seconds, rounds):
    results = {}
    for row in ROWS:
        for side in sides.values():
            side.sample(row, 1, CONNECTIONS)
        busy = turns(sides, row, seconds, rounds)
        # The same rate for both, or the quicker one would have more to do.
        rate = busy["requestsPerSecond"]["another"] / 10
        results[row] = {"busy": busy, "atATenth": turns(sides, row, seconds, rounds, round(CONNECTIONS / rate * 1000))}
    return results


def print_table(results):
    for row, loads in results.items():
        for load, figures in loads.items():
            for figure, sides in figures.items():
                print(f"{row:8}{load:10}{figure:20}{sides['this']:>12,.3f}{sides['another']:>12,.3f}{sides['ratio']:>8.2f}")


def main():
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    for name in ["url", "home", "another-url", "another-home", "work"]:
        parser.add_argument(f"--{name}", required=True)
    options, _ = parser.parse_known_args()
    places = {"this": (options.url, options.home), "another": (options.another_url, options.another_home)}
    sides = {
        name: Side(url, home, [os.path.join(home, "postgres", "postmaster.pid")], options.work, name)
        for name, (url, home) in places.items()
    }
    results = measure(sides, options.seconds, options.rounds)
    if options.json:
        print(json.dumps({"another": results}))
    else:
        print_table(results)


main()

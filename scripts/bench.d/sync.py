"""What sync costs: batches, pages of changes, one account that many devices write to, and whether a page of changes
gets slower when other accounts, or the account's own past, have more items."""

import http.client
import json
import os
import ssl
import statistics
from dataclasses import replace

import loads
from accounts import write_list

PAGE = 100
# Items of other accounts when pages are timed, spread over as many accounts as fit a hundred each.
SIZES = [10_000, 100_000, 1_000_000]
# Items of the account whose pages are timed.
HISTORY = 20_000


class Sync:
    def __init__(self, bench):
        self.bench = bench
        self.options = bench.options
        self.owner = bench.owner
        self.context = ssl.create_default_context(cafile=bench.certificate)
        self.port = bench.port

    def measure(self, accounts):
        walker = accounts[0]
        self.fill_history(walker)
        first = f"/v1/changes?limit={PAGE}"
        last = f"/v1/changes?limit={PAGE}&since={self.cursor_before_the_end(walker)}"
        results = {
            "batchOf100": self.batches(accounts[1:65]),
            "hotAccountWith16Writers": self.hot_account(accounts[65]),
            "pageOf100": self.load("get", [replace(walker, item_id=last)]),
            "pageMillisecondsByItemsOfOthers": {},
        }
        for size in SIZES:
            self.fill_others(size)
            pages = {
                name: self.load("get", [replace(walker, item_id=path)], 4)["p50Milliseconds"]
                for name, path in [("firstOfHistory", first), ("lastOfHistory", last)]
            }
            results["pageMillisecondsByItemsOfOthers"][str(size)] = pages
        return results

    def sample(self, kind, accounts, connections=64):
        path = os.path.join(self.options.work, "sync.tsv")
        write_list(accounts, path)
        return self.bench.sample_server(kind, self.options.seconds, path, connections)

    def load(self, kind, accounts, connections=64):
        sample = self.sample(kind, accounts, connections)
        return {
            "requestsPerSecond": round(sample.outcome.per_second, 1),
            "p50Milliseconds": round(sample.outcome.p50, 3),
            "p99Milliseconds": round(sample.outcome.p99, 3),
            "cpuSecondsPer1000": round(sample.cpu_per_1000, 4),
            "postgresCpuSecondsPer1000": round(sample.postgres_per_1000, 4),
        }

    def batches(self, accounts):
        """Batches, and as many rows in one plain statement, in turns; the medians. The first of each makes the rows."""
        ours, plainly = [], []
        for _ in range(self.options.rounds + 1):
            ours.append(self.load("batch", accounts))
            plainly.append(self.bench.sample_plain("batch", self.options.seconds, len(accounts)))
            self.owner.settle()
        result = medians(ours[1:])
        plain_rate = statistics.median(one.outcome.per_second for one in plainly[1:])
        result["plainRequestsPerSecond"] = round(plain_rate, 1)
        result["plainPostgresCpuSecondsPer1000"] = round(
            statistics.median(one.postgres_per_1000 for one in plainly[1:]), 4)
        result["plainRatio"] = round(result["requestsPerSecond"] / plain_rate, 3)
        return result

    def hot_account(self, account):
        items = self.one_account(account)
        return medians([self.load("write", items, 16) for _ in range(self.options.rounds)])

    def one_account(self, account):
        """The account with each of its hundred items, which a batch has made."""
        self.load("batch", [account], 2)
        prefix = account.item_id[:24]
        return [replace(account, item_id=f"{prefix}{number:012x}") for number in range(1, 101)]

    def fill_history(self, account):
        """Gives the account so many items, with the revisions that writing them one after the other would give."""
        self.owner.run(
            f"""
            WITH past AS (
                INSERT INTO saltern.items
                    (account_id, item_id, revision, collection, format, body, created_at, updated_at)
                SELECT '{account.account_id}', gen_random_uuid(), a.revision + n, 'default', 'aes-256-gcm',
                    sha256(n::text::bytea) || sha256((n + 1)::text::bytea), now(), now()
                FROM saltern.accounts a, generate_series(1, {HISTORY}) n WHERE a.account_id = '{account.account_id}')
            UPDATE saltern.accounts
            SET revision = revision + {HISTORY}, item_count = item_count + {HISTORY}, item_bytes = item_bytes + 64 * {HISTORY}
            WHERE account_id = '{account.account_id}';
            ANALYZE saltern.items;
            """
        )

    def fill_others(self, size):
        """Lets other accounts have so many items in all."""
        self.owner.run(
            f"""
            INSERT INTO saltern.items
                (account_id, item_id, revision, collection, format, body, created_at, updated_at)
            SELECT md5('other ' || n / 100)::uuid, gen_random_uuid(), n % 100 + 1, 'default', 'aes-256-gcm',
                sha256(n::text::bytea) || sha256((n + 1)::text::bytea), now(), now()
            FROM generate_series((
                SELECT count(*) FROM saltern.items i WHERE NOT EXISTS (
                    SELECT FROM saltern.accounts a WHERE a.account_id = i.account_id)), {size} - 1) n;
            VACUUM ANALYZE saltern.items;
            """
        )

    def cursor_before_the_end(self, account):
        """The cursor before which all but the last page of the account's changes lies."""
        client = http.client.HTTPSConnection("localhost", self.port, context=self.context, timeout=30)
        cursor, seen, total = None, 0, HISTORY + 1
        while seen < total - PAGE:
            limit = min(500, total - PAGE - seen)
            since = f"&since={cursor}" if cursor else ""
            client.request(
                "GET", f"/v1/changes?limit={limit}{since}", headers={"Authorization": f"Bearer {account.token}"})
            reply = client.getresponse()
            content = reply.read()
            if reply.status != 200:
                raise loads.BenchmarkError(f"changes: {reply.status} {content[:500]!r}")
            page = json.loads(content)
            cursor, seen = page["cursor"], seen + len(page["changes"])
        return cursor


def medians(samples):
    return {key: statistics.median(sample[key] for sample in samples) for key in samples[0]}

"""Items of shared vaults beside those of accounts, and the removal of a member of a large vault.

Every vault has the same size of item as the account beside it, in the same format. Entries are made by the document of the
protocol alone (Tests/Integration/vault_person.py).
"""

import http.client
import json
import os
import secrets
import ssl
import statistics
import sys
import time
import uuid
from concurrent.futures import ThreadPoolExecutor

import loads
from accounts import BenchAccount, make_accounts, write_list

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "Tests", "Integration"))

import vault_log  # noqa: E402
from vault_person import Person, base64_of, box, generation, previous_key  # noqa: E402

HOLDERS = 200
# The large vault: its members, its items, and how many of its members are removed one after the other.
MEMBERS = 100
ITEMS = 10_000
REMOVALS = 9
BATCH = 100
# A vault's rate is at least an account's divided by this, and a removal takes at most this long.
RATIO_BOUND = 1.3
REMOVAL_BOUND_MILLISECONDS = 100


class Connection:
    def __init__(self, bench):
        context = ssl.create_default_context(cafile=bench.certificate)
        self.connection = http.client.HTTPSConnection("localhost", bench.port, context=context, timeout=60)

    def send(self, method, path, token, body, **fields):
        """The reply to a request that succeeds, and the milliseconds that it took."""
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}", **fields}
        content = json.dumps(body)
        started = time.perf_counter()
        self.connection.request(method, path, content, headers)
        reply = self.connection.getresponse()
        received = reply.read()
        taken = (time.perf_counter() - started) * 1000
        if reply.status not in (200, 201):
            raise loads.BenchmarkError(f"{method} {path}: {reply.status} {received[:500]!r}")
        return json.loads(received), taken


class Vault:
    """A vault with its founder, and the key of its present generation."""

    def __init__(self, connection, account, name):
        self.connection, self.owner, self.name = connection, Person("Ada", account.token), name
        self.key = secrets.token_bytes(32)
        founding = self.owner.found(self.key)
        self.log = vault_log.Log(founding)
        reply, _ = connection.send("POST", "/v1/vaults", account.token, {"entry": base64_of(founding.raw)})
        self.path = f"/v1/vaults/{reply['id']}"

    @property
    def head(self):
        return str(len(self.log.hashes))

    def sealed(self, size):
        """An item in form: nonce, ciphertext and tag are random."""
        return base64_of(b"\x01" + vault_log.key_id(self.key) + os.urandom(12 + size + 16))

    def admit(self, accounts):
        """Lets accounts join as writers."""
        members = []
        while len(members) < len(accounts):
            uses = min(32, len(accounts) - len(members))
            invitation = secrets.token_bytes(16)
            made = vault_log.Invitation(invitation, secrets.token_bytes(16))
            entry, body = self.owner.invite(self.log, self.key, self.name, invitation, made, vault_log.WRITER, uses)
            self.connection.send("POST", f"{self.path}/invitations", self.owner.token, body)
            self.log.append(entry)
            for account in accounts[len(members) : len(members) + uses]:
                person = Person(f"Member {len(members)}", account.token)
                entry = person.join(self.log, self.key, invitation, made)
                self.connection.send(
                    "POST", f"/v1/invitations/{uuid.UUID(bytes=invitation)}/acceptance", account.token,
                    {"entry": base64_of(entry.raw), "token": base64_of(made.token)})
                self.log.append(entry)
                members.append(person)
        return members

    def fill(self, count):
        for _ in range(count // BATCH):
            operations = [
                {
                    "op": "put", "id": str(uuid.uuid4()), "format": "saltern-1", "collection": "bench",
                    "body": self.sealed(192), "ifRevision": 0,
                }
                for _ in range(BATCH)]
            self.connection.send(
                "POST", f"{self.path}/items/batch", self.owner.token, {"operations": operations}, **{"Vault-Head": self.head})

    def remove(self, person):
        """Removes a member, and seals a list of as many edits as the vault has items; the milliseconds of each request."""
        place, key = len(self.log.generations) + 1, secrets.token_bytes(32)
        entry = self.owner.entry(self.log, "remove", generation(key, place) + vault_log.number(1, 2) + person.member)
        rest = [each for each in self.log.present() if each != person.member]
        body = {
            "entry": base64_of(entry.raw), "previousKey": base64_of(previous_key(self.log.vault, place, key, self.key)),
            "boxes": [
                {
                    "member": str(uuid.UUID(bytes=each)),
                    "box": base64_of(box(self.log.vault, place, key, each, self.log.members[each].keys[-1][2])),
                }
                for each in rest],
        }
        _, removal = self.connection.send("POST", f"{self.path}/log", self.owner.token, body)
        self.log.append(entry)
        self.key = key
        return removal, self.seal(person)

    def seal(self, person):
        marks = b"".join(sorted(secrets.token_bytes(48) for _ in range(ITEMS)))
        entry = self.owner.entry(self.log, "seal", person.member + vault_log.number(ITEMS, 4) + vault_log.sha(marks))
        _, taken = self.connection.send(
            "POST", f"{self.path}/log", self.owner.token, {"entry": base64_of(entry.raw), "list": base64_of(marks)})
        self.log.append(entry)
        return taken


def holders(bench, accounts):
    """An item of 1 KiB in each account, and one in a vault of each; as load.lua reads them."""

    def share(first):
        connection, pairs = Connection(bench), []
        for account in accounts[first::8]:
            vault = Vault(connection, account, "Bench")
            item, body = uuid.uuid4(), vault.sealed(1024)
            content = {"format": "saltern-1", "collection": "bench", "body": body}
            pair = []
            for path, head in [("/v1", "-"), (vault.path, vault.head)]:
                fields = {"If-None-Match": "*"} if head == "-" else {"If-None-Match": "*", "Vault-Head": head}
                place = f"{path}/items/{item}"
                connection.send("PUT", place, account.token, content, **fields)
                pair.append(BenchAccount(account.userid, "-", account.account_id, account.token, place, body, head))
            pairs.append(pair)
        return pairs

    with ThreadPoolExecutor(8) as pool:
        return [pair for part in pool.map(share, range(8)) for pair in part]


def compare(bench, kind, lists):
    """Items of accounts and of vaults in turns; the medians."""
    samples = {name: [] for name in lists}
    for name, path in lists.items():
        bench.sample_server(kind, 1, path)
    for _ in range(bench.options.rounds):
        for name, path in lists.items():
            bench.owner.run("VACUUM ANALYZE saltern.items, saltern.accounts, saltern.vault_items, saltern.vaults")
            samples[name].append(bench.sample_server(kind, bench.options.seconds, path))
    result = {name: figures(taken) for name, taken in samples.items()}
    rates = [result[name]["requestsPerSecond"] for name in ("account", "vault")]
    costs = [result[name]["cpuSecondsPer1000"] + result[name]["postgresCpuSecondsPer1000"] for name in ("account", "vault")]
    return {**result, "ratio": round(rates[0] / rates[1], 2), "cpuRatio": round(costs[1] / costs[0], 2)}


def figures(samples):
    return {
        "requestsPerSecond": round(statistics.median(s.outcome.per_second for s in samples), 1),
        "p50Milliseconds": round(statistics.median(s.outcome.p50 for s in samples), 3),
        "p99Milliseconds": round(statistics.median(s.outcome.p99 for s in samples), 3),
        "cpuSecondsPer1000": round(statistics.median(s.cpu_per_1000 for s in samples), 4),
        "postgresCpuSecondsPer1000": round(statistics.median(s.postgres_per_1000 for s in samples), 4),
    }


def measure(bench):
    bench.owner.run("UPDATE saltern.plans SET max_vault_members = 128, max_sessions = 1000000000")
    accounts = make_accounts(bench.port, bench.certificate, HOLDERS, "vault")
    pairs = holders(bench, accounts)
    lists = {}
    for place, name in enumerate(["account", "vault"]):
        lists[name] = os.path.join(bench.options.work, f"vaults-{name}.tsv")
        write_list([pair[place] for pair in pairs], lists[name])
    # Their last version was kept a moment ago, also at the end of a long load.
    bench.owner.run("UPDATE saltern.items SET kept_at = 'infinity'; UPDATE saltern.vault_items SET kept_at = 'infinity'")
    return {"read": compare(bench, "get", lists), "write": compare(bench, "put", lists), "removal": removals(bench, accounts)}


def removals(bench, accounts):
    vault = Vault(Connection(bench), accounts[0], "Large")
    members = vault.admit(accounts[1:MEMBERS])
    vault.fill(ITEMS)
    bench.owner.run("VACUUM ANALYZE saltern.vault_items, saltern.vaults, saltern.vault_members, saltern.vault_entries")
    taken = [vault.remove(person) for person in members[:REMOVALS]]
    return {
        "members": MEMBERS,
        "items": ITEMS,
        "medianMilliseconds": round(statistics.median(removal for removal, _ in taken), 1),
        "maximumMilliseconds": round(max(removal for removal, _ in taken), 1),
        "medianSealMilliseconds": round(statistics.median(seal for _, seal in taken), 1),
    }


def print_table(results):
    for row in ("read", "write"):
        account, vault = results[row]["account"], results[row]["vault"]
        print(
            f"vault: {vault['requestsPerSecond']:,.0f} {row}s a second, of an account's item {account['requestsPerSecond']:,.0f}: "
            f"{results[row]['ratio']:.2f} times the time, {results[row]['cpuRatio']:.2f} times the CPU, "
            f"p99 {vault['p99Milliseconds']:.2f} and {account['p99Milliseconds']:.2f} ms"
        )
    r = results["removal"]
    print(
        f"vault: a removal among {r['members']} members and {r['items']:,} items takes {r['medianMilliseconds']} ms "
        f"(at most {r['maximumMilliseconds']} ms), and its seal {r['medianSealMilliseconds']} ms"
    )


def check(results):
    """Ends with an error beyond a bound."""
    for row in ("read", "write"):
        if results[row]["ratio"] > RATIO_BOUND:
            raise loads.BenchmarkError(f"vault: {row} takes {results[row]['ratio']} times an account's, above {RATIO_BOUND}")
    if results["removal"]["medianMilliseconds"] > REMOVAL_BOUND_MILLISECONDS:
        raise loads.BenchmarkError(f"vault: a removal takes {results['removal']['medianMilliseconds']} ms")

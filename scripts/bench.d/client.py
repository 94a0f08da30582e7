"""What the command saltern-client takes on two devices, beside the same work by a loop of curl, which seals nothing.

Each device is a home; the server is the one that all rows use. Figures of the command are of whole processes: start,
opening the store, sealing and the store's disk are in them.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import time
import uuid

from accounts import make_accounts
from loads import BenchmarkError

ITEMS = 10_000
# The account's items when memory is measured.
MANY = 100_000
BODY = 1024
# So many times a change is made and waited for.
CHANGES = 20
# Requests of one curl process each: as many as say what one costs.
LOOPED = 500
# Longest that one command may take.
PATIENCE = 900


class Device:
    """A home of its own."""

    def __init__(self, bench, name):
        self.client = bench.options.client
        self.home = os.path.join(bench.options.work, f"client-{name}")
        os.makedirs(self.home)
        self.password = os.path.join(self.home, "password")
        with open(os.open(self.password, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as file:
            file.write("correct horse battery staple\n")
        self.where = ["--server", bench.options.url, "--certificate", bench.certificate, "--pin", pin(bench.certificate),
                      "--password-file", self.password, "--device", name]

    def enter(self, command, userid):
        self.run(command, *self.where, "--userid", userid)

    def run(self, *words):
        """Runs a command to its end: its output, and how long it took."""
        begin = time.monotonic()
        with subprocess.Popen(
            [self.client, *words], env={"HOME": self.home}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True,
        ) as process:
            try:
                output, errors = process.communicate(timeout=PATIENCE)
            except subprocess.TimeoutExpired as error:
                process.kill()
                raise BenchmarkError(f"saltern-client {words[0]} took longer than {PATIENCE} s") from error
        if process.returncode != 0:
            raise BenchmarkError(f"saltern-client {words[0]}: {process.returncode} {errors[-500:]}")
        return output, time.monotonic() - begin

    def peak(self, *words):
        """The largest resident set of a command, in MB."""
        finished = subprocess.run(
            ["/usr/bin/python3", "-c", MEASURE, self.client, *words], env={"HOME": self.home}, timeout=PATIENCE,
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if finished.returncode != 0:
            raise BenchmarkError(f"saltern-client {words[0]}: {finished.stderr[-500:]}")
        return round(int(finished.stdout) / 1024, 1)

    def watch(self, folder):
        os.makedirs(folder, exist_ok=True)
        return subprocess.Popen(
            [self.client, "sync", folder, "--watch"], env={"HOME": self.home}, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


# In a process of its own, whose only child is the command.
MEASURE = """
import resource, subprocess, sys
status = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(status)
"""


def pin(certificate):
    command = (
        'openssl x509 -in "$1" -noout -pubkey | openssl pkey -pubin -outform DER | openssl dgst -sha256 -binary | '
        "openssl base64"
    )
    finished = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command, "-", certificate], capture_output=True, text=True, check=True)
    return "sha256//" + finished.stdout.strip()


def say(results):
    """What there is by now: the whole takes minutes."""
    print("client:", json.dumps(results), file=sys.stderr, flush=True)
    return results


def write_documents(path, count):
    """A file for `saltern-client import`."""
    with open(path, "w", encoding="ascii") as file:
        file.write('{"type":"documents","version":1}\n')
        for number in range(count):
            text = os.urandom(BODY // 2).hex()
            document = {"type": "document", "id": str(uuid.uuid4()), "collection": "notes", "title": f"note {number}",
                        "text": text}
            file.write(json.dumps(document) + "\n")
        file.write(json.dumps({"type": "end", "documents": count}) + "\n")


class Client:
    def __init__(self, bench):
        self.bench = bench
        self.options = bench.options
        self.phone, self.laptop = Device(bench, "phone"), Device(bench, "laptop")
        # So many items and sessions are no plan's.
        bench.owner.run(
            f"UPDATE saltern.plans SET max_items = greatest(max_items, {2 * MANY}), max_bytes = greatest(max_bytes, 1 << 30)")

    def measure(self):
        userid = f"client-{uuid.uuid4()}@example.org"
        self.phone.enter("register", userid)
        self.laptop.enter("login", userid)
        results = {"items": ITEMS, **say(self.first()), **say(self.seen())}
        results["curl"] = say(Curl(self.bench).measure())
        results["memory"] = say(self.memory())
        return results

    def import_documents(self, count):
        documents = os.path.join(self.options.work, "documents.ndjson")
        write_documents(documents, count)
        _, seconds = self.phone.run("import", documents)
        os.unlink(documents)
        return seconds

    def first(self):
        """Ten thousand items go up from one device and come down to the other."""
        imported = self.import_documents(ITEMS)
        output, upload = self.phone.run("sync", "--json")
        if json.loads(output)["sent"] != ITEMS:
            raise BenchmarkError(f"upload: {output}")
        output, download = self.laptop.run("sync", "--json")
        if json.loads(output)["fetched"] != ITEMS:
            raise BenchmarkError(f"first sync: {output}")
        output, listing = self.laptop.run("list", "--json")
        if len(json.loads(output)["items"]) != ITEMS:
            raise BenchmarkError("list: not all items")
        return {
            "secondsToSealAndStore": round(imported, 2),
            "secondsToUpload": round(upload, 2),
            "secondsOfFirstSync": round(download, 2),
            "secondsToList": round(listing, 2),
        }

    def seen(self):
        """A file that is written in one folder is in the other one: both are watched."""
        folders = [os.path.join(self.options.work, name) for name in ("client-files-phone", "client-files-laptop")]
        watchers = [device.watch(folder) for device, folder in zip((self.phone, self.laptop), folders)]
        try:
            # The first one waits for both to begin.
            delays = [self.see(folders, number) for number in range(CHANGES + 1)][1:]
        finally:
            for watcher in watchers:
                watcher.terminate()
            for watcher in watchers:
                watcher.wait(30)
        return {
            "medianMillisecondsUntilSeen": round(statistics.median(delays) * 1000, 1),
            "maximumMillisecondsUntilSeen": round(max(delays) * 1000, 1),
        }

    def see(self, folders, number):
        text = os.urandom(BODY // 2).hex()
        begin = time.monotonic()
        with open(os.path.join(folders[0], f"{number}.txt"), "w", encoding="ascii") as file:
            file.write(text)
        there = os.path.join(folders[1], f"{number}.txt")
        while not os.path.exists(there):
            if time.monotonic() - begin > 60:
                raise BenchmarkError("a file did not come to the other folder within a minute")
            time.sleep(0.002)
        return time.monotonic() - begin

    def memory(self):
        """The command at a hundred thousand items: the rest goes up, comes down to a third device, and is listed."""
        self.import_documents(MANY - ITEMS)
        peaks = {"upload": self.phone.peak("sync")}
        peaks["nothingNew"] = self.phone.peak("sync")
        peaks["status"] = self.phone.peak("status")
        peaks["list"] = self.phone.peak("list")
        peaks["firstSync"] = self.laptop.peak("sync")
        for device in (self.phone, self.laptop):
            shutil.rmtree(device.home)
        return {"items": MANY, "megabytes": peaks}


class Curl:
    """What a script does without the kit: one process a request, and nothing is sealed, stored or compared."""

    def __init__(self, bench):
        self.bench = bench
        self.account = make_accounts(bench.port, bench.certificate, 1, f"curl-{uuid.uuid4()}")[0]
        self.work = os.path.join(bench.options.work, "curl")
        os.makedirs(self.work)
        with open(os.path.join(self.work, "item.json"), "w", encoding="ascii") as file:
            json.dump({"format": "aes-256-gcm", "body": self.account.body}, file)
        with open(os.path.join(self.work, "curl.conf"), "w", encoding="ascii") as file:
            file.write(f'silent\nfail\nnoproxy = "*"\ncacert = "{bench.certificate}"\nmax-time = 60\n')
            file.write(f'header = "Authorization: Bearer {self.account.token}"\n')

    def loop(self, script):
        begin = time.monotonic()
        finished = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script, "-", self.bench.options.url], cwd=self.work, timeout=PATIENCE,
            capture_output=True, text=True, check=False)
        if finished.returncode != 0:
            raise BenchmarkError(f"curl: {finished.returncode} {finished.stderr[-500:]}")
        return finished.stdout, time.monotonic() - begin

    def measure(self):
        _, upload = self.loop(
            f"""
            for ((n = 0; n < {LOOPED}; n++)); do
                curl --config curl.conf --output /dev/null --request PUT --header 'If-None-Match: *' \\
                    --header 'Content-Type: application/json' --data-binary @item.json \\
                    "$1/v1/items/$(</proc/sys/kernel/random/uuid)"
            done
            """
        )
        self.fill()
        output, download = self.loop(
            """
            since= count=0 more=true
            while [[ $more == true ]]; do
                curl --config curl.conf --output page.json "$1/v1/changes?limit=500$since"
                read -r more cursor number < <(jq --raw-output '"\\(.more) \\(.cursor) \\(.changes | length)"' page.json)
                since="&since=$cursor" count=$((count + number))
            done
            echo "$count"
            """
        )
        if int(output) < ITEMS:
            raise BenchmarkError(f"curl fetched {output} of {ITEMS}")
        return {
            "secondsToUpload": round(upload / LOOPED * ITEMS, 2),
            "uploadsMeasured": LOOPED,
            "secondsOfFirstSync": round(download, 2),
        }

    def fill(self):
        """The account gets as many items as the command's has."""
        self.bench.owner.run(
            f"""
            WITH new AS (
                INSERT INTO saltern.items
                    (account_id, item_id, revision, collection, format, body, created_at, updated_at)
                SELECT '{self.account.account_id}', gen_random_uuid(), a.revision + n, 'default', 'aes-256-gcm', i.body,
                    now(), now()
                FROM saltern.accounts a, generate_series(1, {ITEMS - LOOPED}) n, (
                    SELECT body FROM saltern.items WHERE account_id = '{self.account.account_id}' LIMIT 1) i
                WHERE a.account_id = '{self.account.account_id}')
            UPDATE saltern.accounts
            SET revision = revision + {ITEMS}, item_count = item_count + {ITEMS}, item_bytes = item_bytes + {BODY * ITEMS}
            WHERE account_id = '{self.account.account_id}';
            ANALYZE saltern.items;
            """
        )

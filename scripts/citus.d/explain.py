"""Asks a cluster how it would carry out every statement, and names those that are not one step on one shard.

Called by scripts/citus. What may take more is listed here with the reason; what is listed and does not is wrong too.
"""

import argparse
import json
import re
import subprocess
import sys

# What operators and the hourly purge ask, of all accounts: one step, on every shard.
EVERYWHERE = {
    "FindLogins", "SummarizeAccounts", "FindLockedAccounts", "FindNeverUsedAccounts",
    "FindAccountsWithSessions", "CountSealedSecrets", "FindOutdatedSecrets", "SumUpAccounts", "CountLiveSessions",
    "CountTheRest", "FindEndedSessions", "FindExpiredContents", "FindOldTombstones", "FindExpiredRotations",
    "FindOldEvents", "FindEndedShares", "FindOldAttempts", "SampleIterations", "ReadEveryNode", "FindDueTombstones",
    "FindDueContents", "FindDueRotations", "FindDueEvents", "FindDueAttempts", "FindDueShares",
    "FindExpiredKeyrings", "FindExpiredVersions", "FindDueKeyrings", "FindDueVersions", "FindExpiredChallenges",
    "FindDueChallenges", "FindUndelivered", "FindEventKeys", "FindAccountsOfDestination", "FindOverdueEvents",
    "FindExpiredEvents", "FindIdleQueues", "FindDueQueues", "FindTestQueue", "FindWaitingEvents", "FindParkedEvents", "FindEventsByID",
    "FindExpiredInvitations", "StepInVault<FindExpiredContents>", "StepInVault<FindExpiredVersions>", "StepInVault<FindOldTombstones>",
    "StepInVault<FindDueTombstones>", "StepInVault<FindDueContents>", "StepInVault<FindDueVersions>", "FindDueInvitations",
}  # fmt: skip
# Of many streams, shares, accounts or vaults at once, wherever these are: one step, one query a shard.
BY_SHARD = {
    "FindMovedRevisions", "FindLiveSessions", "RemoveShares", "FindShareHeaders", "SuspendShares", "LockQueues",
    "ParkOverdueEvents", "SettleQueues", "RemoveEndedQueues", "RemoveExpiredEvents", "RemoveEventsOfDestination",
    "RemoveQueuesOfDestination", "FindListedVaults", "FindMovedVaults", "FindLiveMemberships", "FindVaults", "FindHeldVaults",
    "FindUnlockedAccounts", "FindOpenings", "RemoveInvitations", "RemoveExpiredInvitations",
}  # fmt: skip
# A MERGE whose source has a table of every node: the source is read first, of one shard, then one shard is written.
READ_FIRST = {
    "QueueAccountEvent", "QueueOpenedSession", "QueueEnds", "StoreChange", "Guarded<QueueCallersEnds<RemoveSession>>",
    "Guarded<QueueCallersEnds<RemoveOtherSessions>>", "Guarded<QueueCallersEnds<RemoveCurrentSession>>",
}  # fmt: skip
# An INSERT of the rows of arrays, or with the revision base: they are made first, then one shard is written. Only changes
# of a vault's log need it.
MADE_FIRST = {"InsertBoxes", "InsertPreviousKeys", "InsertEntries", "PutMembers", "InsertVault"}
# An operator's question about three kinds of rows.
THREE_QUESTIONS = {"FindPlanUse"}
# Rows are locked on one shard only: each statement names one key.
ONE_KEY = {"RemoveOldAttempts", "RemoveEndedShares"}
# Two keys, and so two shards, by their nature: what one says is asked first.
TWO_KEYS = {"InsertShare"}
# The chain of the audit log is on the coordinator; a table lock has no plan.
ELSEWHERE = {"AppendAudit", "BlockChanges"}

# The server names the types of parameters, without which this statement has an unclear sum.
TYPES = {"GuardedInVault<DecideDeletion>": ("$8 +", "$8::timestamptz +")}

VALUES = {
    "uuid": "'11111111-1111-1111-1111-111111111111'::uuid", "text": "'x'::text",
    "bytea": "'\\xabababababababababababababababababababababababababababababababab'::bytea",
    "smallint": "3::smallint", "integer": "3::integer", "bigint": "3::bigint", "boolean": "true", "numeric": "3::numeric", "double precision": "0.5::float8",
    "timestamp with time zone": "'2026-01-01 00:00:00Z'::timestamptz",
}  # fmt: skip


def value(kind: str, several: bool) -> str:
    if kind.endswith("[]"):
        element = kind[:-2]
        items = [VALUES[element]]
        if several and element == "uuid":
            items.append("'22222222-2222-2222-2222-222222222222'::uuid")
        if several and element == "bytea":
            items += [f"'\\x{digit * 64}'::bytea" for digit in "123456789cde"]
        return f"(ARRAY[{', '.join(items)}]::{kind})"
    return f"({VALUES[kind]})"


def psql(url: str, script: str) -> list[str]:
    """The answers, by statement."""
    words = ["psql", "--no-psqlrc", "--quiet", "--tuples-only", "--no-align", url]
    finished = subprocess.run(words, input=script, capture_output=True, text=True, timeout=300, check=False)
    return finished.stdout.split("==next==\n")[1:]


def kinds(url: str, statements: list[dict[str, str]]) -> list[list[str]]:
    script = "SET search_path = saltern, pg_temp;\n"
    for number, statement in enumerate(statements):
        script += f"\\echo ==next==\nPREPARE s{number} AS {statement['sql']};\n"
        script += f"SELECT to_json(parameter_types::text[]) FROM pg_prepared_statements WHERE name = 's{number}';\n"
    return [json.loads(answer) if answer.strip() else [] for answer in psql(url, script)]


def steps(plan: str) -> tuple[int, list[int]]:
    """How many parts of the statement are carried out before others, and how many shards each part asks."""
    extra = plan.count("Distributed Subplan") + plan.count("pull to coordinator")
    return extra, [int(count) for count in re.findall(r"Task Count: (\d+)", plan)]


def judge(name: str, plan: str) -> str | None:
    """What is wrong with it."""
    if name in ELSEWHERE:
        return None
    if "QUERY PLAN" not in plan and not plan.strip():
        return "is refused"
    extra, tasks = steps(plan)
    if name in EVERYWHERE:
        return None if max(tasks, default=0) > 1 else "asks one shard: it need not be listed any more"
    if name in READ_FIRST:
        is_so = plan.count("pull to coordinator") == 1 and plan.count("Distributed Subplan") == 0 and tasks == [1]
        return None if is_so else f"takes {extra + 1} steps on {tasks} shards, and not two on one"
    if name in MADE_FIRST:
        return None if extra == 1 else f"takes {extra + 1} steps, and not two"
    if name in THREE_QUESTIONS:
        return None if extra == 3 else f"takes {extra + 1} steps, and not four"
    if name in TWO_KEYS:
        return None if max(tasks, default=1) <= 1 else "asks many shards"
    if extra:
        return f"takes {extra + 1} steps"
    if name in BY_SHARD:
        return None if len(tasks) == 1 and tasks[0] > 1 else f"asks {tasks} shards, and not several in one step"
    return None if all(count <= 1 for count in tasks) else f"asks {tasks} shards"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--executable", required=True)
    parser.add_argument("--database", required=True)
    options = parser.parse_args()
    listed = subprocess.run([options.executable, "statements"], capture_output=True, text=True, check=True).stdout
    statements = [json.loads(line) for line in listed.splitlines()]
    for statement in statements:
        if found := TYPES.get(statement["name"]):
            statement["sql"] = statement["sql"].replace(*found)
    script = "SET search_path = saltern, pg_temp;\n"
    for statement, types in zip(statements, kinds(options.database, statements), strict=True):
        name = statement["name"]
        sql = re.sub(r"\$(\d+)", lambda found: value(types[int(found.group(1)) - 1], name not in ONE_KEY) if types else found.group(0),
                     statement["sql"])  # fmt: skip
        script += f"\\echo ==next==\nBEGIN;\nEXPLAIN (COSTS OFF) {sql};\nROLLBACK;\n"
    names = {statement["name"] for statement in statements}
    listed_names = EVERYWHERE | BY_SHARD | READ_FIRST | MADE_FIRST | THREE_QUESTIONS | ONE_KEY | TWO_KEYS | ELSEWHERE
    complaints = [f"{name} is listed here and is no statement" for name in sorted(listed_names - names)]
    for statement, plan in zip(statements, psql(options.database, script), strict=True):
        if complaint := judge(statement["name"], plan):
            complaints.append(f"{statement['name']} {complaint}")
    for complaint in complaints:
        print(complaint)
    print(f"{len(statements)} statements, {len(complaints)} complaints")
    sys.exit(1 if complaints else 0)


main()

"""Turns the SQL that the server executes into pgbench scripts: the one place that knows statements by name.

`saltern statements` prints every statement as a JSON line {"name": …, "sql": …} with $1, $2, … for its parameters. Here
each parameter gets an expression over pgbench variables. pgbench sends a variable as a parameter of its own wherever it
stands, so long values are computed in the database rather than sent several times: that favours pgbench.
"""

import json
import re
import subprocess

# What a client of pgbench knows of its present account (see REFRESH).
ACCOUNT = ":account_id::uuid"
TOKEN_HASH = ":token_hash::bytea"
ITEM = ":item_id::uuid"
NOW = "now()"
IDLE_SINCE = "(now() - interval '30 days')"
CALLER = [ACCOUNT, TOKEN_HASH, NOW, IDLE_SINCE]
TOUCH_DUE = "(now() - interval '1 minute')"
KEPT_SINCE = "(now() - interval '10 minutes')"

# Sixteen digits, sixty-four times: 1,024 bytes that are others each time.
BODY = "convert_to(repeat(lpad(:n::text, 16, '0'), 64), 'UTF8')"

# Statement -> an expression for each of $1, $2, …
PARAMETERS = {
    "FindLogin": [":userid::text"],
    # Hashes of subjects without failed attempts; 32 bytes, as of every subject and counter.
    "FindFailedAttempts": ["sha256(:userid::text::bytea)", "ARRAY[sha256('1'), sha256('2')]"],
    "HoldFailedAttempts": ["sha256(:userid::text::bytea)", "sha256('1')"],
    "OpenSession": [ACCOUNT, "true", "1::bigint"],
    "StoreSession": [
        ACCOUNT,
        "true",
        "1::bigint",
        "uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())",
        "gen_random_uuid()",
        "NULL::text",
        NOW,
        "(now() + interval '365 days')",
    ],
    "Authenticate": [TOUCH_DUE, *CALLER],
    "FindItem": [ACCOUNT, ITEM],
    "TakeView": [NOW, ":share_id::bytea"],
    "FindTokenSubject": [ACCOUNT, TOKEN_HASH],
    "ReplaceItem": [
        "1024::bigint",
        TOUCH_DUE,
        KEPT_SINCE,
        ACCOUNT,
        TOKEN_HASH,
        NOW,
        IDLE_SINCE,
        ITEM,
        "NULL::bigint",
        BODY,
        "NULL::bytea",
        "'aes-256-gcm'::text",
        "'default'::text",
        "NULL::integer",
        "(1024 - 262144)::bigint",
    ],
    "CreateItem": [
        "1024::bigint", "5::bigint", ACCOUNT, TOKEN_HASH, NOW, IDLE_SINCE, "0::bigint", "gen_random_uuid()", TOUCH_DUE],
    "StoreNewItem": [
        ACCOUNT, "5::bigint", "gen_random_uuid()", "'default'::text", "'aes-256-gcm'::text", "NULL::integer",
        "NULL::bytea", BODY, NOW],
    "DeleteOneItem": [
        "4096::bigint", ACCOUNT, TOKEN_HASH, NOW, IDLE_SINCE, ITEM, "(-1)::bigint", TOUCH_DUE],
    "ArchiveContent": [NOW, "4096::bigint", ACCOUNT, ITEM, "8191::bigint"],
    "WriteTombstone": [NOW, ACCOUNT, "4096::bigint", "8191::bigint", ITEM],
    "AuthenticateForWrite": [TOUCH_DUE, *CALLER, ACCOUNT],
    "TouchSession": [NOW, ACCOUNT, TOKEN_HASH, IDLE_SINCE, "(now() + interval '1 minute')"],
    "FindChanges": [
        "100::bigint", ACCOUNT, "0::bigint", "0::bigint", "true", "NULL::text", "1048576::bigint"],
}

# Row of the table -> what the server executes for one request, in order.
ENDPOINTS = {
    "login": ["FindLogin", "FindFailedAttempts", "OpenSession", "StoreSession", "HoldFailedAttempts"],
    "read": ["Authenticate", "FindItem"],
    "write": ["ReplaceItem"],
    "share": ["TakeView"],
    "token": ["Authenticate", "FindTokenSubject"],
}

# The server sends these rows' statements in one round trip and one transaction; pgbench may do one at a time.
ONE_ROUND_TRIP = {"read", "token"}

# pgbench has numbers only, so a client looks up an account's identifiers now and then and keeps them. No two of its sixteen
# clients have the same account: a write that waits for another of its account does nothing, and is asked in full then.
REFRESH = """\
\\set n random(1000000000000, 9000000000000000)
\\set refresh random(1, 200)
\\if :refresh = 1 or :started = 0
\\set number 1 + :client_id + 16 * random(0, :accounts / 16 - 1)
SELECT userid, account_id, token_hash, item_id, share_id FROM bench.accounts WHERE number = :number \\gset
\\set started 1
\\endif
"""


class Statements:
    """The server's own SQL, by name."""

    def __init__(self, executable):
        output = subprocess.run([executable, "statements"], check=True, capture_output=True, text=True).stdout
        self.sql = {}
        for line in output.splitlines():
            statement = json.loads(line)
            # Owned<FindItem> is FindItem with the caller's account, Guarded<ReplaceItem> is ReplaceItem with the caller.
            name = re.sub(r"^\w+<(\w+)>$", r"\1", statement["name"])
            self.sql[name] = statement["sql"]

    def bound(self, name):
        """The statement with an expression for each parameter, without comments."""
        if name not in self.sql:
            raise SystemExit(f"the server has no statement {name}; it has: {', '.join(sorted(self.sql))}")
        expressions = PARAMETERS[name]

        def expression(match):
            number = int(match.group(1))
            if number > len(expressions):
                raise SystemExit(f"{name} has a parameter ${number} that statements.py does not know")
            return expressions[number - 1]

        without_comments = re.sub(r"--[^\n]*", "", self.sql[name])
        return re.sub(r"\$(\d+)", expression, without_comments).strip().rstrip(";")

    def script(self, row, pipelined):
        """The pgbench script of a row; `pipelined`: in as few round trips as the server."""
        statements = "".join(self.bound(name) + ";\n" for name in ENDPOINTS[row])
        if pipelined and row in ONE_ROUND_TRIP:
            statements = f"\\startpipeline\n{statements}\\endpipeline\n"
        return REFRESH + statements

    def proof(self, row):
        """A script that fails when one of a row's reading statements finds nothing."""
        reads = [name for name in ENDPOINTS[row] if name in ("FindLogin", "Authenticate", "FindItem", "FindTokenSubject")]
        checks = "".join(f"SELECT 1 / count(*) FROM ({self.bound(name)}) AS found;\n" for name in reads)
        return REFRESH + checks

import HTTPCore
import SalternTesting
import Synchronization
import Testing

@testable import Postgres
@testable import SalternServer

/// On which connections each request writes: what may share a transaction with others, what only a connection, and what
/// has one for itself. (On a cluster a group has one request, and triggers are not where the rows are.)
@Suite(.enabled(if: !TestEnvironment.isCluster)) struct LaneTests {
    /// What is seen of a request while a commit is held.
    struct Lanes: Equatable, CustomStringConvertible {
        /// Where its first write that is not on a lease goes.
        enum First: String {
            case group, shared
            /// It has none.
            case none
        }

        let first: First
        /// The tables whose rows it changes on a connection that others use too.
        let shared: Set<String>
        /// Those whose rows it changes on a connection of its own.
        let leased: Set<String>

        var description: String { "\(first), shared: \(shared.sorted()), leased: \(leased.sorted())" }

        init(_ first: First, shared: Set<String> = [], leased: Set<String> = []) {
            self.first = first
            self.shared = shared
            self.leased = leased
        }
    }

    /// Groups are for what is short and frequent. A proof of the present key ends with a statement of its own, which
    /// changes no row and may share a transaction, and a log-in with a code begins like any other; what they permit has a
    /// connection for itself.
    private static let expected: [String: Lanes] = [
        "DELETE item": Lanes(.group, shared: ["accounts", "deleted_contents", "items"]),
        "PUT item": Lanes(.group, shared: ["accounts", "items", "replaced_contents"]),
        "PUT new item": Lanes(.group, shared: ["accounts", "items"]),
        "log-in": Lanes(.group, shared: ["sessions"]),
        "DELETE account": Lanes(.group, leased: ["accounts", "audit_head", "audit_log", "logins", "sessions"]),
        "begin second factor": Lanes(.group, leased: ["second_factors"]),
        "change credential": Lanes(.group, leased: ["accounts", "logins", "security_events"]),
        "change userid": Lanes(.group, leased: ["accounts", "logins", "security_events"]),
        "commit": Lanes(
            .group, leased: ["accounts", "items", "logins", "rotation_items", "rotations", "security_events"]),
        "confirm second factor": Lanes(
            .group, leased: ["accounts", "second_factor_codes", "second_factors", "security_events"]),
        "end second factor": Lanes(.group, leased: ["second_factors"]),
        "export": Lanes(.group, leased: ["security_events"]),
        "log-in with a one-time code": Lanes(.group, leased: ["second_factors", "sessions"]),
        "log-in with a recovery code": Lanes(.group, leased: ["second_factor_codes", "security_events", "sessions"]),
        "open rotation": Lanes(.group, leased: ["rotations"]),
        "remove recovery": Lanes(.group, leased: ["recoveries", "security_events"]),
        "renew recovery codes of a second factor": Lanes(.group, leased: ["second_factor_codes", "security_events"]),
        "set recovery": Lanes(.group, leased: ["recoveries", "security_events"]),
        "GET share": Lanes(.shared, shared: ["shares"]),
        "POST share": Lanes(.shared, shared: ["account_shares", "accounts", "shares"]),
        "PUT receipt": Lanes(.shared, shared: ["accounts", "receipts", "security_events"]),
        "end current session": Lanes(.shared, shared: ["accounts", "security_events", "sessions"]),
        "end session": Lanes(.shared, shared: ["accounts", "security_events", "sessions"]),
        "failed log-in": Lanes(.shared, shared: ["failed_attempts"]),
        "DELETE share": Lanes(.none, leased: ["account_shares", "shares"]),
        "DELETE share by token": Lanes(.none, leased: ["account_shares", "shares"]),
        "PUT keyring": Lanes(.none, leased: ["accounts"]),
        "PUT share": Lanes(.none, leased: ["account_shares", "shares"]),
        "PUT share by token": Lanes(.none, leased: ["account_shares", "shares"]),
        "batch": Lanes(.none, leased: ["accounts", "deleted_contents", "items"]),
        "change restricted": Lanes(.none, leased: ["accounts", "logins", "security_events", "sessions"]),
        "discard rotation": Lanes(.none, leased: ["rotation_items", "rotations"]),
        "end other sessions": Lanes(.none, leased: ["accounts", "logins"]),
        "recovery": Lanes(.none, leased: ["accounts", "recoveries", "security_events", "sessions"]),
        "register": Lanes(.none, leased: ["accounts", "logins", "sessions"]),
        "register with an invite": Lanes(.none, leased: ["accounts", "invites", "logins", "sessions"]),
        "restore item": Lanes(.none, leased: ["accounts", "deleted_contents", "items"]),
        "stage": Lanes(.none, leased: ["accounts", "rotation_items", "rotations"]),
    ]

    /// What is not among the acts that write to an account that exists.
    private static let more: [WritingAct] = [
        WritingAct(description: "register") { written, _ in
            { _ in try await InviteTests.register(written.app, nil).status }
        },
        WritingAct(description: "register with an invite") { written, _ in
            let code = try await InviteTests.invite(written.app)[0].code.text
            return { _ in try await InviteTests.register(written.app, code).status }
        },
        WritingAct(description: "renew recovery codes of a second factor") { written, _ in
            let protected = try await written.app.protect(written.account)
            let path = "/v1/account/totp/recovery-codes"
            return { _ in try await written.client.post(path, protected.account.currentKey).status }
        },
        WritingAct(description: "log-in with a one-time code") { written, _ in
            let protected = try await written.app.protect(written.account)
            return { _ in try await written.app.logIn(protected, protected.authenticator.code()).status }
        },
        WritingAct(description: "log-in with a recovery code") { written, _ in
            let protected = try await written.app.protect(written.account)
            return { _ in try await written.app.logIn(protected, protected.recoveryCodes[0]).status }
        },
    ]

    private static var acts: [WritingAct] {
        let others = WritingAct.items + WritingAct.shares + WritingAct.sessions + WritingAct.credentials
        // These two would change nothing.
        let idle = ["register the userid", "renew recovery codes"]
        return (others + WritingAct.rotations + more).filter { !idle.contains($0.description) }
    }

    @Test func `each request writes where its kind belongs`() async throws {
        var configuration = TestApplication.configuration
        configuration.shares.acceptsAnonymous = true
        try await TestApplication.with(configuration, connections: 1) { app in
            let commit = try await HeldCommit(in: app)
            try await app.watchLanes(besides: commit.holder.id)
            try await SeparateClient.with(app.database.ownerURL) { owner in
                var seen: [String: Lanes] = [:]
                for act in Self.acts {
                    seen[act.description] = try await Self.observe(act, app, commit, owner)
                }
                for name in Set(seen.keys).union(Self.expected.keys).sorted() {
                    #expect(seen[name] == Self.expected[name], "\(name)")
                }
            }
        }
    }

    private static func observe(
        _ act: WritingAct, _ app: TestApplication, _ commit: HeldCommit, _ owner: SeparateClient
    ) async throws -> Lanes {
        let run = try await act.prepare(try await WrittenAccount(app), owner)
        // The use of a session, which is recorded later, would be taken for what the request does.
        try await eventually {
            let later = try await app.run { [postgres = app.postgres] in postgres.later.count }
            let lanes = try await commit.lanes()
            return later == 0 && lanes.inUse == 0
        }
        try await app.forgetLanes()
        let isDone = SessionRaceTests.Flag()
        let (task, first) = try await commit.hold {
            let task = Task {
                defer { isDone.set() }
                return try await run(0)
            }
            var first = Lanes.First.none
            try await eventually {
                let lanes = try await commit.lanes()
                if lanes.waiting > 0 { first = .group } else if lanes.inUse > 1 { first = .shared }
                return first != .none || isDone.isSet
            }
            return (task, first)
        }
        let status = try await task.value
        #expect((200..<300).contains(status) || act.description == "failed log-in", "\(act): \(status)")
        let changes = try await app.execute(FindChangedTables())
        return Lanes(
            first, shared: Set(changes.filter(\.isShared).map(\.table)),
            leased: Set(changes.filter { !$0.isShared }.map(\.table)))
    }
}

extension TestApplication {
    /// Notes from now on on which connections rows are changed. (The last use of sessions is not waited for, and left out.)
    /// - Parameter account: Whose rows do not matter.
    fileprivate func watchLanes(besides account: String) async throws {
        try await administer(
            """
            CREATE TABLE public.changes (table_name text NOT NULL, lock_timeout text NOT NULL);
            GRANT SELECT ON public.changes TO PUBLIC;
            CREATE FUNCTION public.note_change() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
                BEGIN
                    IF to_jsonb(coalesce(NEW, OLD)) ->> 'account_id' IS DISTINCT FROM '\(account)' THEN
                        INSERT INTO public.changes SELECT TG_TABLE_NAME, current_setting('lock_timeout');
                    END IF;
                    RETURN NULL;
                END $$;
            DO $$ DECLARE name text; BEGIN
                FOR name IN SELECT c.relname FROM pg_class c
                    WHERE c.relnamespace = 'saltern'::regnamespace AND c.relkind = 'r' LOOP
                    EXECUTE format('CREATE TRIGGER note_change AFTER INSERT OR DELETE %s ON saltern.%I FOR EACH ROW
                        EXECUTE FUNCTION public.note_change()', CASE WHEN name <> 'sessions' THEN 'OR UPDATE' END, name);
                END LOOP;
            END $$
            """)
    }

    fileprivate func forgetLanes() async throws { try await administer("TRUNCATE public.changes") }
}

private struct FindChangedTables: Statement {
    struct Row: Sendable {
        let table: String
        /// Nothing waits on a connection that others use too.
        let isShared: Bool
    }

    static let isReadOnly = true
    static let sql: SQL<Self> = "SELECT DISTINCT c.table_name, c.lock_timeout = '5ms' FROM public.changes c"

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

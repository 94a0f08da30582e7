import HTTPCore
import Postgres
import SalternTesting
import Testing

@testable import SalternServer

/// A commit that does not end for a while, on the one connection that an application has for commits.
struct HeldCommit: Sendable {
    let app: TestApplication
    /// Whose commits wait.
    let holder: TestAccount
    private let path = "/v1/items/\(Fixtures.uuid())"

    /// Makes the commits of one account's item wait at a gate, which is open.
    init(in app: TestApplication) async throws {
        self.app = app
        holder = try await app.register()
        // The tried lock makes the transaction at the gate visible. Nothing waits for a lock: a request that does moves to
        // a dedicated connection.
        try await app.administer(
            """
            CREATE TABLE public.gate (is_open boolean NOT NULL);
            INSERT INTO public.gate VALUES (true);
            CREATE FUNCTION public.wait_at_gate() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
                BEGIN
                    PERFORM pg_try_advisory_xact_lock(4711);
                    WHILE NOT (SELECT g.is_open FROM public.gate g) LOOP PERFORM pg_sleep(0.002); END LOOP;
                    RETURN NULL;
                END $$;
            CREATE CONSTRAINT TRIGGER wait_at_gate AFTER INSERT OR UPDATE ON saltern.items
                DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.account_id = '\(holder.id)')
                EXECUTE FUNCTION public.wait_at_gate();
            """)
        #expect(try await holder.client.put(path, ItemTests.item(), ["If-None-Match": "*"]).status == 201)
    }

    /// Holds a commit while `body` runs.
    ///
    /// On a busy machine the request may meet a lock, and its commit is then on a dedicated connection. It is repeated
    /// until its commit is on the connection for commits.
    func hold<Result: Sendable>(_ body: () async throws -> Result) async throws -> Result {
        for _ in 0..<20 {
            if let result = try await holdOnce(body) { return result }
        }
        throw ConditionNeverHeld(description: "none of 20 commits was on the connection for commits")
    }

    private func holdOnce<Result: Sendable>(_ body: () async throws -> Result) async throws -> Result? {
        try await open(false)
        let held = Task { try await holder.client.put(path, ItemTests.item(), ["If-Match": "*"]).status }
        do {
            var connection: String?
            try await eventually {
                connection = try await app.execute(FindConnectionAtGate()).first
                return connection != nil
            }
            let result: Result? =
                if connection?.hasSuffix(" commits") == true, try await lanes().inUse == 1 {
                    try await body()
                } else { nil }
            try await open(true)
            #expect(try await held.value == 200)
            return result
        } catch {
            try? await open(true)
            _ = await held.result
            throw error
        }
    }

    private func open(_ isOpen: Bool) async throws {
        try await app.administer("UPDATE public.gate SET is_open = \(isOpen)")
    }

    /// The connection that commits: what is under way on it, with the commit that is held, and what waits for it.
    func lanes() async throws -> (inUse: Int, waiting: Int) {
        let postgres = app.postgres
        let lane = try await app.run { postgres.statistics().lanes[.commits] }
        return (lane?.inUse ?? 0, lane?.waiting ?? 0)
    }
}

/// The name of the connection with the commit at the gate.
private struct FindConnectionAtGate: Statement {
    typealias Row = String

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT a.application_name FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
        WHERE l.locktype = 'advisory' AND l.objid = 4711 AND a.datname = current_database()
        """
}

/// The transaction that last wrote each row of some.
struct FindTransactions: Statement {
    typealias Row = Int64

    let ids: [UUID]

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT xmin::text::bigint FROM saltern.items WHERE item_id = ANY(\(\.ids)::uuid[])
        UNION ALL SELECT xmin::text::bigint FROM saltern.sessions WHERE session_id = ANY(\(\.ids)::uuid[])
        """
}

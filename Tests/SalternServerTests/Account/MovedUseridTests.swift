import HTTPCore
import Postgres
import SalternTesting
import Testing

@testable import SalternServer

/// What an admin does to whoever has a userid.
enum ActOnUserid: String, CaseIterable, Sendable {
    case lock, unlock, endSessions, setPlan, delete, removeSecondFactor

    func perform(_ userid: String, _ database: PostgresClient, _ signature: AuditSignature) async throws {
        let accounts = AccountAdministration(database: database)
        switch self {
        case .lock: _ = try await accounts.lock(.userid(userid), by: signature)
        case .unlock: _ = try await accounts.unlock(.userid(userid), by: signature)
        case .endSessions: _ = try await accounts.endSessions(.userid(userid), by: signature)
        case .setPlan: _ = try await accounts.assign("pro", to: .userid(userid), by: signature)
        case .delete: _ = try await accounts.delete(.userid(userid), by: signature)
        case .removeSecondFactor:
            _ = try await SecondFactorAdministration(database: database).remove(
                of: .userid(userid), by: signature)
        }
    }
}

@Suite struct MovedUseridTests {
    /// Everything that an act could change.
    private struct FindTraces: Statement {
        typealias Row = String
        static let isReadOnly = true
        static let sql: SQL<Self> = """
            SELECT (SELECT string_agg(a.userid || ' ' || a.plan || ' ' || coalesce(a.locked_at::text, '-'), ', '
                    ORDER BY a.userid) FROM saltern.accounts a)
                || '; sessions ' || (SELECT count(*) FROM saltern.sessions)
                || '; factors ' || (SELECT count(*) FROM saltern.second_factors)
                || '; events ' || (SELECT count(*) FROM saltern.security_events)
                || '; records ' || (SELECT count(*) FROM saltern.audit_log)
            """
    }

    /// The account leaves its userid, and somebody else takes it.
    private struct MoveUserid: Statement {
        typealias Row = Void
        let from: String
        let to: String
        let newcomer: AccountID

        static let sql: SQL<Self> = """
            WITH left_behind AS (
                UPDATE saltern.logins l SET account_id = \(\.newcomer) WHERE l.userid = \(\.from) RETURNING l.*
            ), taken AS (
                INSERT INTO saltern.logins (userid, account_id, verifier, kdf_iterations)
                SELECT \(\.to), a.account_id, l.verifier, l.kdf_iterations
                FROM left_behind l, saltern.accounts a WHERE a.userid = \(\.from)
            ), newcomer AS (
                INSERT INTO saltern.accounts (account_id, userid, created_at)
                    VALUES (\(\.newcomer), \(\.from), '2026-01-01')
            )
            UPDATE saltern.accounts SET userid = \(\.to) WHERE userid = \(\.from)
            """
    }

    @Test(arguments: ActOnUserid.allCases)
    func `an act on a userid does nothing to an account that has left it meanwhile`(_ act: ActOnUserid) async throws {
        try await TestApplication.with(connections: 2) { app in
            let ada = try await app.protect(app.register("ada")).account
            if act == .unlock { try await app.administer("UPDATE saltern.accounts SET locked_at = '2026-01-01'") }
            let signature = InviteTests.signature(app)
            let (acting, moved) = try await HeldRow.account(ada, in: app) { held in
                let acting = Task { try await Self.refusal(of: act, signature, app) }
                try await held.waiters(1)
                _ = try await held.execute(MoveUserid(from: "ada", to: "eve", newcomer: .random()))
                return (acting, try await held.execute(FindTraces()))
            }
            #expect(try await acting.value == .noSuchUserid(canonical: nil))
            #expect(try await app.execute(FindTraces()) == moved)
        }
    }

    private static func refusal(
        of act: ActOnUserid, _ signature: AuditSignature, _ app: TestApplication
    ) async throws -> AccountRefusal? {
        do {
            try await app.asOwner { try await act.perform("ada", $0, signature) }
            return nil
        } catch let error as AccountRefusal {
            return error
        }
    }
}

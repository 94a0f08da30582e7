import Postgres
import SalternTesting
import Testing

@testable import SalternServer

@Suite struct AuditForgeryTests {
    /// Appends with the rights of the server's role, as an attacker who has its password would.
    private static func append(_ act: AppendAudit, to app: TestApplication) async throws {
        let postgres = app.postgres
        try await app.run { try await postgres.withTransaction { try await $0.record(act) } }
    }

    @Test func `the server's role records deletions by an account's owner, and no act of an admin`() async throws {
        try await TestApplication.with { app in
            for act in [
                AppendAudit(actor: AuditLogTests.admin, action: .accountDeleted, targetAccount: .random()),
                AppendAudit(actor: .account, action: .accountLocked, targetAccount: .random()),
                AppendAudit(actor: .account, action: .accountDeleted),
                AppendAudit(actor: .account, action: .accountDeleted, targetAccount: .random(), detail: "forged"),
            ] {
                let error = await #expect(throws: PostgresError.self) { try await Self.append(act, to: app) }
                #expect(error?.sqlState == .insufficientPrivilege, "\(act)")
            }
            #expect(try await AuditLogTests.verify(app) == AuditChain.beginning)
            try await Self.append(
                AppendAudit(actor: .account, action: .accountDeleted, targetAccount: .random()), to: app)
            #expect(try await AuditLogTests.verify(app).sequence == 1)
        }
    }

    @Test(arguments: ["- interval '16 minutes'", "- interval '1 day'", "+ interval '2 minutes'"])
    func `the server's role records nothing of another time`(offset: String) async throws {
        try await TestApplication.with { app in
            func insert(_ sequence: Int, _ offset: String) -> String {
                """
                SET ROLE saltern_server;
                INSERT INTO saltern.audit_log
                    (sequence, occurred_at, actor, action, target_account, detail, previous_hash, hash)
                VALUES (\(sequence), clock_timestamp() \(offset), 'account', 'account_deleted', gen_random_uuid(), NULL,
                    sha256(''), sha256(''))
                """
            }
            try await app.administer(insert(1, ""))
            await #expect(throws: (any Error).self) { try await app.administer(insert(2, offset)) }
        }
    }

    @Test(arguments: [
        "UPDATE saltern.accounts SET locked_at = NULL", "UPDATE saltern.accounts SET plan = 'pro'",
        "UPDATE saltern.accounts SET created_at = now()", "UPDATE saltern.accounts SET account_id = gen_random_uuid()",
        "INSERT INTO saltern.accounts (account_id, userid, created_at, locked_at) VALUES "
            + "(gen_random_uuid(), 'x', now(), now())",
        "UPDATE saltern.audit_log SET actor = 'x'", "DELETE FROM saltern.audit_log",
        "ALTER TABLE saltern.audit_log DISABLE ROW LEVEL SECURITY", "DROP POLICY audit_log_record ON saltern.audit_log",
    ])
    func `the server's role sets no lock and no plan, and changes no policy`(sql: String) async throws {
        try await TestApplication.with { app in
            _ = try await app.register("ada")
            await #expect(throws: (any Error).self) { try await app.administer("SET ROLE saltern_server; \(sql)") }
            try await app.administer(
                "SET ROLE saltern_server; UPDATE saltern.accounts SET writer = writer; "
                    + "SELECT FROM saltern.accounts FOR UPDATE")
        }
    }

    @Test func `rows whose time goes back are named, and are no break of the chain`() async throws {
        var chain = try AuditChain()
        // 100 s to 40 s is a minute: nodes of the release before may differ by that.
        for seconds: Int64 in [100, 101, 100, 40, 30, 29, 200] { try chain.follow(seconds: seconds) }
        #expect(chain.timesThatWentBack.isEmpty)
        try chain.follow(seconds: 100)
        #expect(chain.timesThatWentBack == [8])
    }
}

extension AuditChain {
    fileprivate mutating func follow(seconds: Int64) throws {
        let unsigned = AuditEntry(
            sequence: end.sequence + 1, occurredAt: Timestamp(microsecondsSince2000: seconds * 1_000_000), actor: "ada",
            action: "account_locked", targetAccount: nil, detail: nil, previousHash: end.hash, hash: end.hash)
        try follow(
            AuditEntry(
                sequence: unsigned.sequence, occurredAt: unsigned.occurredAt, actor: unsigned.actor,
                action: unsigned.action, targetAccount: nil, detail: nil, previousHash: end.hash,
                hash: unsigned.computedHash))
    }
}

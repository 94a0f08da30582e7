import Postgres
import SalternTesting
import Testing

@testable import SalternServer

@Suite struct AuditLogTests {
    static let admin = AuditActor("ada") ?? .account

    /// Appends a row for each detail, each in a transaction of its own, with the rights of the schema's owner.
    static func append(_ details: String?..., to app: TestApplication) async throws {
        for detail in details {
            try await append(
                AppendAudit(actor: admin, action: .accountLocked, targetAccount: .random(), detail: detail), to: app)
        }
    }

    static func append(_ act: AppendAudit, to app: TestApplication) async throws {
        try await app.asOwner { owner in try await owner.withTransaction { try await $0.record(act) } }
    }

    /// Reads the clock that also sets the time of an entry.
    static func databaseTime(_ app: TestApplication) async throws -> Timestamp {
        try #require(try await app.execute(ReadDatabaseTime()).first)
    }

    private struct ReadDatabaseTime: Statement {
        typealias Row = Timestamp
        static let isReadOnly = true
        static let sql: SQL<Self> = "SELECT clock_timestamp()"
    }

    static func verify(_ app: TestApplication, noted: AuditPlace? = nil) async throws -> AuditPlace {
        let postgres = app.postgres
        return try await app.run { try await AuditReview(database: postgres, sliceSize: 3).verify(noted: noted) }
    }

    static func finding(_ app: TestApplication, noted: AuditPlace? = nil) async throws -> AuditFinding? {
        await #expect(throws: AuditFinding.self) { try await verify(app, noted: noted) }
    }

    @Test func `what is appended is a chain, whose hashes the database and the program compute alike`() async throws {
        try await TestApplication.with { app in
            #expect(try await Self.verify(app) == AuditChain.beginning)
            try await Self.append("", nil, "ünïcödé 🔑", "a", to: app)
            let before = try await Self.databaseTime(app)
            try await Self.append(AppendAudit(actor: .account, action: .accountDeleted), to: app)
            let after = try await Self.databaseTime(app)
            let head = try await Self.verify(app)
            #expect(head.sequence == 5)
            let postgres = app.postgres
            let entries = try await app.run { try await AuditReview(database: postgres).latest(3) }
            #expect(entries.map(\.sequence) == [5, 4, 3])
            #expect(entries.map(\.detail) == [nil, "a", "ünïcödé 🔑"])
            #expect(entries[0].targetAccount == nil)
            #expect(entries[0].actor == "account")
            #expect(entries[0].action == "account_deleted")
            #expect(before <= entries[0].occurredAt)
            #expect(entries[0].occurredAt <= after)
            #expect(entries[0].hash == head.hash)
            #expect(try await app.run { try await AuditReview(database: postgres).latest(9, before: 3) }.count == 2)
        }
    }

    @Test func `a row's hash is the documented one`() throws {
        let entry = AuditEntry(
            sequence: 258, occurredAt: Timestamp(microsecondsSince2000: 1), actor: "ada", action: "account_locked",
            targetAccount: AccountID(UUID(high: 1, low: 2)), detail: "é", previousHash: AuditChain.beginning.hash,
            hash: AuditChain.beginning.hash)
        // Computed with Python's hashlib from the description of the bytes.
        #expect(entry.computedHash.description == "f13c41f8585a77364e19300371318a2c9a0812cbf7d2eaf647745aef6deea6fc")
    }

    @Test func `fifty acts at once are fifty rows in a row, and an act that is undone leaves none`() async throws {
        try await TestApplication.with(connections: 2) { app in
            let postgres = app.postgres
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<50 {
                    group.addTask {
                        if number % 5 == 0 {
                            let act = AppendAudit(
                                actor: .account, action: .accountDeleted, targetAccount: .random())
                            await #expect(throws: Undone.self) {
                                try await app.run {
                                    try await postgres.withTransaction { transaction in
                                        try await transaction.record(act)
                                        throw Undone()
                                    }
                                }
                            }
                        }
                        try await Self.append("\(number)", to: app)
                    }
                }
                try await group.waitForAll()
            }
            #expect(try await Self.verify(app).sequence == 50)
            let details = try await app.run {
                try await AuditReview(database: postgres).latest(100).compactMap(\.detail)
            }
            #expect(Set(details) == Set((0..<50).map(String.init)))
        }
    }

    @Test func `verifying while others append finds nothing wrong`() async throws {
        try await TestApplication.with(connections: 2) { app in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<4 { group.addTask { for _ in 0..<10 { try await Self.append("x", to: app) } } }
                for _ in 0..<10 { _ = try await Self.verify(app) }
                try await group.waitForAll()
            }
            #expect(try await Self.verify(app).sequence == 40)
        }
    }

    @Test func `nothing is done that cannot be recorded`() async throws {
        try await TestApplication.with { app in
            try await app.administer("DELETE FROM saltern.audit_head")
            await #expect(throws: AuditLogUnusable.self) { try await Self.append("x", to: app) }
        }
    }

    @Test func `actors are names that a terminal can show`() {
        #expect(AuditActor("") == nil)
        #expect(AuditActor("a\u{1B}[2J") == nil)
        #expect(AuditActor("a\u{202E}b") == nil)
        #expect(AuditActor(String(repeating: "a", count: 129)) == nil)
        #expect(AuditActor("Ada Lovelace")?.name == "Ada Lovelace")
    }

    private struct Undone: Error {}
}

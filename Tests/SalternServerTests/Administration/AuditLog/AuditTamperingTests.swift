import Postgres
import SalternTesting
import Testing

@testable import SalternServer

@Suite struct AuditTamperingTests {
    struct Tampering: Sendable, CustomTestStringConvertible {
        let name: String
        let sql: String
        let finding: AuditFinding

        init(_ name: String, _ sequence: Int64, _ kind: AuditFinding.Kind, _ sql: String) {
            self.name = name
            self.sql = sql
            finding = AuditFinding(sequence: sequence, kind: kind)
        }

        var testDescription: String { name }
    }

    /// The hash that a forger who knows the rule gives to row `e`.
    private static let forgedHash = """
        sha256(e.previous_hash || int8send(e.sequence) || timestamptz_send(e.occurred_at)
            || int4send(octet_length(e.actor)) || convert_to(e.actor, 'UTF8')
            || int4send(octet_length(e.action)) || convert_to(e.action, 'UTF8')
            || '\\x01'::bytea || uuid_send(e.target_account)
            || int4send(octet_length(e.detail)) || convert_to(e.detail, 'UTF8'))
        """

    /// What is done to a chain of eight rows.
    static let all = [
        Tampering(
            "time", 3, .changed, "UPDATE saltern.audit_log SET occurred_at = occurred_at + '1us' WHERE sequence = 3"),
        Tampering("actor", 1, .changed, "UPDATE saltern.audit_log SET actor = 'eve' WHERE sequence = 1"),
        Tampering("action", 4, .changed, "UPDATE saltern.audit_log SET action = 'account_unlocked' WHERE sequence = 4"),
        Tampering("target", 8, .changed, "UPDATE saltern.audit_log SET target_account = NULL WHERE sequence = 8"),
        Tampering("detail", 5, .changed, "UPDATE saltern.audit_log SET detail = NULL WHERE sequence = 5"),
        Tampering("hash", 5, .changed, "UPDATE saltern.audit_log SET hash = sha256('x') WHERE sequence = 5"),
        Tampering(
            "previous hash", 5, .changed, "UPDATE saltern.audit_log SET previous_hash = sha256('x') WHERE sequence = 5"),
        Tampering(
            "a new hash too", 6, .unconnected,
            """
            UPDATE saltern.audit_log SET detail = 'other' WHERE sequence = 5;
            UPDATE saltern.audit_log e SET hash = \(forgedHash) WHERE e.sequence = 5
            """),
        Tampering(
            "the last row with a new hash", 8, .headDiffers,
            """
            UPDATE saltern.audit_log SET detail = 'other' WHERE sequence = 8;
            UPDATE saltern.audit_log e SET hash = \(forgedHash) WHERE e.sequence = 8
            """),
        Tampering("first removed", 1, .missing, "DELETE FROM saltern.audit_log WHERE sequence = 1"),
        Tampering("one removed", 4, .missing, "DELETE FROM saltern.audit_log WHERE sequence = 4"),
        Tampering("tail removed", 7, .missing, "DELETE FROM saltern.audit_log WHERE sequence >= 7"),
        Tampering("all removed", 1, .missing, "TRUNCATE saltern.audit_log"),
        Tampering(
            "removed and closed up", 4, .changed,
            """
            DELETE FROM saltern.audit_log WHERE sequence = 4;
            UPDATE saltern.audit_log SET sequence = sequence + 100 WHERE sequence > 4;
            UPDATE saltern.audit_log SET sequence = sequence - 101 WHERE sequence > 4
            """),
        Tampering(
            "inserted at the end", 9, .beyondHead,
            """
            INSERT INTO saltern.audit_log
            SELECT 9, occurred_at, actor, action, target_account, detail, hash, sha256('x') FROM saltern.audit_log
            WHERE sequence = 8;
            UPDATE saltern.audit_log e SET hash = \(forgedHash) WHERE e.sequence = 9
            """),
        Tampering(
            "inserted in between", 5, .changed,
            """
            UPDATE saltern.audit_log SET sequence = sequence + 100 WHERE sequence > 4;
            UPDATE saltern.audit_log SET sequence = sequence - 99 WHERE sequence > 100;
            INSERT INTO saltern.audit_log
            SELECT 5, occurred_at, actor, action, target_account, detail, hash, sha256('x') FROM saltern.audit_log
            WHERE sequence = 4
            """),
        Tampering(
            "two exchanged", 2, .changed,
            """
            UPDATE saltern.audit_log SET sequence = 100 WHERE sequence = 2;
            UPDATE saltern.audit_log SET sequence = 2 WHERE sequence = 7;
            UPDATE saltern.audit_log SET sequence = 7 WHERE sequence = 100
            """),
        Tampering("head moved back", 7, .beyondHead, "UPDATE saltern.audit_head SET sequence = 6"),
        Tampering("head moved on", 9, .missing, "UPDATE saltern.audit_head SET sequence = 10"),
        Tampering("head's hash", 8, .headDiffers, "UPDATE saltern.audit_head SET hash = sha256('x')"),
        Tampering("head removed", 9, .headMissing, "DELETE FROM saltern.audit_head"),
    ]

    private static func eightRows(_ app: TestApplication) async throws -> AuditPlace {
        try await AuditLogTests.append("a", "b", "c", "d", "e", "f", "g", "h", to: app)
        return try await AuditLogTests.verify(app)
    }

    @Test func `every way of tampering is found, and where it begins`() async throws {
        try await TestApplication.with { app in
            _ = try await Self.eightRows(app)
            try await app.administer(
                "CREATE TABLE kept_log AS TABLE saltern.audit_log; CREATE TABLE kept_head AS TABLE saltern.audit_head")
            for tampering in Self.all {
                try await app.administer(tampering.sql)
                #expect(try await AuditLogTests.finding(app) == tampering.finding, "\(tampering.name)")
                try await app.administer(
                    """
                    TRUNCATE saltern.audit_log, saltern.audit_head;
                    INSERT INTO saltern.audit_log TABLE kept_log; INSERT INTO saltern.audit_head TABLE kept_head
                    """)
                #expect(try await AuditLogTests.verify(app).sequence == 8)
            }
        }
    }

    @Test func `a chain that was made anew, or cut off with its head, is not the one that was noted`() async throws {
        try await TestApplication.with { app in
            let noted = try await Self.eightRows(app)
            try await AuditLogTests.append("i", to: app)
            #expect(try await AuditLogTests.verify(app, noted: noted).sequence == 9)
            #expect(try await AuditLogTests.verify(app, noted: AuditChain.beginning).sequence == 9)

            try await app.administer(
                """
                DELETE FROM saltern.audit_log WHERE sequence > 7;
                UPDATE saltern.audit_head SET sequence = 7,
                    hash = (SELECT hash FROM saltern.audit_log WHERE sequence = 7)
                """)
            #expect(try await AuditLogTests.verify(app).sequence == 7)
            #expect(
                try await AuditLogTests.finding(app, noted: noted) == AuditFinding(sequence: 8, kind: .missing))

            try await app.administer(
                "TRUNCATE saltern.audit_log; UPDATE saltern.audit_head SET sequence = 0, hash = decode(repeat('00', 32), 'hex')"
            )
            _ = try await Self.eightRows(app)
            #expect(
                try await AuditLogTests.finding(app, noted: noted) == AuditFinding(sequence: 8, kind: .notAsNoted))
        }
    }

    @Test func `the server's role appends, and can neither change nor remove`() async throws {
        try await TestApplication.with { app in
            _ = try await Self.eightRows(app)
            for sql in [
                "UPDATE saltern.audit_log SET detail = NULL", "DELETE FROM saltern.audit_log",
                "TRUNCATE saltern.audit_log", "DELETE FROM saltern.audit_head",
                "INSERT INTO saltern.audit_head VALUES (false, 0, sha256('x'))",
            ] {
                let error = await #expect(throws: PostgresError.self, "\(sql)") {
                    try await app.script(sql, url: app.database.serverURL)
                }
                #expect(error?.sqlState == .insufficientPrivilege, "\(sql)")
            }
        }
    }

    @Test func `a noted place is read as it was printed`() {
        let digits = String(repeating: "0f", count: 32)
        #expect(AuditPlace("7:\(digits)")?.description == "7:\(digits)")
        for text in ["", "7", ":\(digits)", "-1:\(digits)", "7:\(digits.dropLast())", "7:\(digits)0", "x:\(digits)"] {
            #expect(AuditPlace(text) == nil, "\(text)")
        }
    }
}

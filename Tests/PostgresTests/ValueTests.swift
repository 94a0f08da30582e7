import Testing

@testable import Postgres

@Suite struct ValueTests {
    @Test func `a UUID is read and printed in canonical form`() throws {
        let text = "01890a5d-ac96-774b-bcce-b302099a8057"
        let uuid = try #require(UUID(text))
        #expect(uuid.high == 0x0189_0a5d_ac96_774b)
        #expect(uuid.low == 0xbcce_b302_099a_8057)
        #expect(uuid.description == text)
        #expect(UUID(bytes: uuid.bytes) == uuid)
    }

    @Test(arguments: [
        "", "01890a5dac96774bbcceb302099a8057", "01890A5D-AC96-774B-BCCE-B302099A8057",
        "{01890a5d-ac96-774b-bcce-b302099a8057}", "01890a5d-ac96-774b-bcce-b302099a805",
        "01890a5d-ac96-774b-bcce-b302099a80577",
        "01890a5d-ac96-774b-bcce-b302099a805g", "01890a5dac-96-774b-bcce-b302099a8057",
        "01890a5d-ac96-774b-bcce-b302099a805\u{e9}",
    ])
    func `another form of a UUID is refused`(text: String) {
        #expect(UUID(text) == nil)
    }

    @Test func `UUIDs are ordered by their bytes`() {
        #expect(UUID(high: 1, low: .max) < UUID(high: 2, low: 0))
        #expect(UUID(high: 1, low: 1) < UUID(high: 1, low: 2))
        #expect(UUID(bytes: [UInt8](repeating: 0, count: 15)) == nil)
    }

    @Test func `moments are counted from both epochs`() {
        let moment = Timestamp(unixSeconds: 1_763_759_519)
        #expect(moment.microsecondsSince2000 == (1_763_759_519 - 946_684_800) * 1_000_000)
        #expect(moment.unixSeconds == 1_763_759_519)
        #expect((moment - .microseconds(1)).unixSeconds == 1_763_759_518)
        #expect(Timestamp(unixMicroseconds: -1).unixSeconds == -1)
        #expect(Timestamp(unixSeconds: -1).unixMicroseconds == -1_000_000)
    }

    @Test func `moments and durations add up, and infinities stay`() {
        let moment = Timestamp(unixSeconds: 10)
        #expect(moment + .seconds(5) == Timestamp(unixSeconds: 15))
        #expect(moment - .milliseconds(1) < moment)
        #expect((moment + .seconds(5)) - moment == .seconds(5))
        #expect(Timestamp.distantFuture - .seconds(1) == .distantFuture)
        #expect(Timestamp.distantPast + .seconds(1) == .distantPast)
        #expect(Timestamp(unixSeconds: .max) == .distantFuture)
        #expect(Timestamp.distantFuture.unixMicroseconds == .max)
    }

    @Test func `an SQLSTATE says whether to try again, and whether the session is over`() {
        #expect(SQLState.uniqueViolation.code == "23505")
        #expect(SQLState.uniqueViolation.errorClass == "23")
        #expect(SQLState("53300").isTransient && SQLState.deadlockDetected.isTransient)
        #expect(!SQLState.uniqueViolation.isTransient && !SQLState.syntaxError.isTransient)
        #expect(SQLState.adminShutdown.endsSession && SQLState.readOnlyTransaction.endsSession)
        #expect(!SQLState.queryCanceled.endsSession)
    }

    @Test func `a node that a cluster has lost is tried again, and another internal error is not`() {
        let lost = ServerError(
            state: .internalError, unredactedMessage: "failure on connection marked as essential: 127.0.0.1:5432")
        #expect(PostgresError.server(lost).isTransient)
        let closed = "server closed the connection unexpectedly\n\tThis probably means …"
        for (message, function, isLost) in [
            ("a bug", nil, false), ("a bug", "ReportResultError", false), (closed, nil, false),
            (closed, "ReportResultError", true), ("connection not open", "ReportResultError", true),
            ("could not commit transaction for shard 1", "ErrorIfPostCommitFailedShardPlacements", true),
        ] {
            let error = ServerError(state: .internalError, unredactedMessage: message, function: function)
            #expect(PostgresError.server(error).isTransient == isLost, "\(message)")
            #expect(error.isOfOtherNode == (function == "ReportResultError"))
            #expect(error.isCommitUnknown == (function?.hasPrefix("ErrorIf") == true))
        }
    }

    @Test func `a connection string is read, refused without being quoted, and never printed`() throws {
        let configuration = try PostgresConfiguration("postgresql://ada:canary@localhost/x?connect_timeout=3")
        #expect(configuration.connectTimeout == .seconds(3))
        let program = try configuration.programConnection
        #expect(program.string.contains("connect_timeout='3'") && !program.string.contains("canary"))
        #expect(try PostgresConfiguration("host=x").programConnection.string == "host='x' connect_timeout='5'")
        let marked = try PostgresConfiguration("host=x user='a\\'\u{301}b'").programConnection.string
        #expect(Array(marked.utf8) == Array("user='a\\'\u{301}b' host='x' connect_timeout='5'".utf8))
        let passphrase = try PostgresConfiguration("postgresql://ada@localhost/x?sslpassword=canary")
        let refused = #expect(throws: PostgresError.self) { try passphrase.programConnection }
        #expect(refused.map { "\($0)".contains("sslpassword") && !"\($0)".contains("canary") } == true)
        #expect(!"\(configuration)".contains("canary"))
        #expect(!String(reflecting: configuration).contains("canary"))
        var dumped = ""
        dump(configuration, to: &dumped)
        #expect(!dumped.contains("canary"))
        let error = #expect(throws: PostgresError.self) {
            try PostgresConfiguration("postgresql://ada:canary@local host/x?canary=1")
        }
        #expect(error.map { !"\($0)".contains("canary") } == true)
    }
}

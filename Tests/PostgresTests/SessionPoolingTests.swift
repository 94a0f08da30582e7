import SalternTesting
import Testing

@testable import Postgres

/// Sessions that a client may not count on.
@Suite(.timeLimit(.minutes(60))) struct SessionPoolingTests {
    @Test func `a session of one's own is nothing to complain about`() async throws {
        try await withClient { client in
            #expect(client.keepsSessions)
            let findings = try await client.poolingFindings()
            #expect(findings.isEmpty)
        }
    }

    @Test func `nothing is compiled in a session of one's own, whatever a plan costs`() async throws {
        try await withClient { client in
            let shown = [
                try await client.execute(Shown()), try await client.withConnection { try await $0.execute(Shown()) },
            ]
            #expect(shown.allSatisfy { $0.count == 1 && $0[0].hasSuffix(" off") })
        }
    }

    @Test func `where sessions are exchanged, the role's defaults have to be what each session is set to otherwise`()
        async throws
    {
        try await withDatabase("", Self.pooled) { client in
            let findings = try await client.poolingFindings()
            let names = findings.map { finding in
                if case .setting(_, let name, _, _) = finding { name } else { "" }
            }
            #expect(
                names == [
                    "enable_bitmapscan", "idle_in_transaction_session_timeout", "jit", "lock_timeout", "search_path",
                    "statement_timeout",
                ])
            let told = "\(try #require(findings.first { "\($0)".contains("lock_timeout") }))"
            #expect(told == "lock_timeout is '0' in a session of the role \(Self.role(told)): \(Self.command(told))")
            #expect(Self.command(told).hasSuffix("SET lock_timeout = 5"))
        }
    }

    @Test func `nothing is set in the session, and a connection of one's own has its limits all the same`() async throws
    {
        try await withDatabase("", Self.pooled) { client in
            #expect(try await client.execute(Shown()) == ["0 on"])
            let leased = try await client.withConnection { lease in
                [try await lease.execute(Shown()), try await lease.execute(Shown())]
            }
            #expect(leased == [["5s on"], ["5s on"]])
            let several = try await client.withConnection { try await $0.execute(Echo(value: true), Echo(value: 7)) }
            #expect(several.0 == [true] && several.1 == [7])
            let inTransaction = try await client.withTransaction { try await $0.execute(Shown()) }
            #expect(inTransaction == ["5s on"])
            // The same connection, after the transaction.
            #expect(try await client.execute(Shown()) == ["0 on"])
        }
    }

    @Test func `a session's name says what it is for, unless sessions are exchanged or somebody has named it`()
        async throws
    {
        let one: @Sendable (inout PostgresConfiguration) -> Void = {
            $0.readConnections = 1
            $0.commitConnections = 1
        }
        func names(
            _ configure: @escaping @Sendable (inout PostgresConfiguration) -> Void, _ url: String? = nil
        ) async throws -> [String] {
            try await withClient(configure, url: url) { client in
                try await client.execute(Name(), key: GroupTests.key(1))
                    + client.execute(ReadName()) + client.withConnection { try await $0.execute(Name()) }
            }
        }
        #expect(try await names(one) == ["saltern commits", "saltern reads", "saltern leases"])
        #expect(try await names(Self.pooled) == ["saltern", "saltern", "saltern"])
        let url = try TestEnvironment.administratorURL()
        let named = url + (url.contains("?") ? "&" : "?") + "application_name=ours"
        #expect(try await names(one, named) == ["ours", "ours", "ours"])
    }

    private struct Name: Statement {
        typealias Row = String
        static let sql: SQL<Self> = "SELECT current_setting('application_name')"
    }

    private struct ReadName: Statement {
        typealias Row = String
        static let isReadOnly = true
        static let sql: SQL<Self> = "SELECT current_setting('application_name')"
    }

    private static let pooled: @Sendable (inout PostgresConfiguration) -> Void = {
        $0.pooling = .transaction
        $0.lockTimeout = .seconds(5)
        $0.readConnections = 1
        $0.commitConnections = 1
    }

    private static func role(_ told: String) -> String {
        String(told.split(separator: " role ").last?.split(separator: ":").first ?? "")
    }

    private static func command(_ told: String) -> String { String(told.split(separator: ": ").last ?? "") }
}

private struct Shown: Statement {
    typealias Row = String
    static let sql: SQL<Self> = "SELECT concat_ws(' ', current_setting('lock_timeout'), current_setting('jit'))"
}

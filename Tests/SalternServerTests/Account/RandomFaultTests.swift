import HTTPCore
import Postgres
import SalternTesting
import Testing

@testable import SalternServer

/// Requests whose clients leave, rows that somebody holds, and sessions that PostgreSQL ends, all at random: whatever was
/// told to whom, counters equal the rows, and the service works on.
@Suite struct RandomFaultTests {
    private static let rounds = 3

    @Test func `counters equal the rows whatever goes wrong on the way`() async throws {
        try await TestApplication.with(connections: 4) { app in
            try await app.administer("UPDATE saltern.plans SET max_sessions = 3 WHERE plan = 'default'")
            let accounts = [
                try await app.register(), try await app.register(), try await app.register(),
                try await app.register(),
            ]
            for _ in 0..<Self.rounds {
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for account in accounts {
                        for seed in 0..<8 { group.addTask { try await Self.visit(app, account, seed) } }
                    }
                    group.addTask { try await Self.hold(accounts, app) }
                    group.addTask { try await Self.endSessions(of: app) }
                    try await group.waitForAll()
                }
            }
            #expect(try await Self.findings(app) == [])
            for account in accounts {
                app.clock.advance(by: .seconds(120))
                let body: JSONValue = [
                    "userid": .string(account.userid), "passwordKey": .string(account.passwordKey),
                ]
                let login = try await Self.patiently { try await app.client.post("/v1/sessions", body) }
                let client = app.client.with(token: login.string("session.token"))
                let path = "/v1/items/\(Fixtures.uuid())"
                let item = ItemTests.item()
                let put = try await Self.patiently { try await client.put(path, item, ["If-None-Match": "*"]) }
                // The reply to the first attempt may have been lost.
                #expect([200, 201].contains(put.status), "\(put)")
            }
        }
    }

    /// What somebody does with an account, leaving now and then before the reply has come.
    private static func visit(_ app: TestApplication, _ account: TestAccount, _ seed: Int) async throws {
        var token: String?
        for _ in 0..<6 {
            if token == nil { token = try? await app.logIn(account).token }
            let client = app.client.with(token: token ?? account.client.token)
            let request = Task { try await Self.request(client, Int.random(in: 0..<7)) }
            if Bool.random() {
                try await Task.sleep(for: .microseconds(.random(in: 0..<8_000)))
                request.cancel()
            }
            let status = (try? await request.value) ?? 503
            #expect(status < 500 || status == 503, "\(status)")
            if status == 401 { token = nil }
        }
    }

    private static func request(_ client: TestClient, _ kind: Int) async throws -> Int {
        let path = "/v1/items/\(Fixtures.uuid())"
        switch kind {
        case 0: return try await client.put(path, ItemTests.item(), ["If-None-Match": "*"]).status
        case 1:
            _ = try await client.put(path, ItemTests.item(), ["If-None-Match": "*"])
            return try await client.delete(path, ["If-Match": "*"]).status
        case 2:
            let operations = (0..<5).map { _ in BatchTests.put(Fixtures.uuid(), 0, ItemTests.item()) }
            return try await client.post("/v1/items/batch", ["operations": .array(operations)]).status
        case 3: return try await client.post("/v1/shares", ShareFixtures.content(["maxViews": 1])).status
        case 4:
            let reply = try await client.post("/v1/shares", ShareFixtures.content())
            guard let id = reply.string("id") else { return reply.status }
            return try await client.with(token: reply.string("manageToken")).delete("/v1/shares/\(id)").status
        case 5: return try await client.delete("/v1/sessions").status
        default: return try await client.put("/v1/account/receipt", ["receipt": .string(path)]).status
        }
    }

    /// An admin with psql, who holds rows for a while.
    private static func hold(_ accounts: [TestAccount], _ app: TestApplication) async throws {
        for account in accounts.shuffled() {
            try await HeldRow.account(account, in: app) { _ in try await Task.sleep(for: .milliseconds(60)) }
        }
    }

    /// PostgreSQL ends sessions of the service.
    private static func endSessions(of app: TestApplication) async throws {
        for _ in 0..<4 {
            try await Task.sleep(for: .milliseconds(40))
            try await app.administer(
                """
                SELECT pg_terminate_backend(pid) FROM (
                    SELECT pid FROM pg_stat_activity
                    WHERE datname = current_database() AND usename = 'saltern_test_server' ORDER BY random() LIMIT 1
                ) chosen
                """)
        }
    }

    /// Sends a request again while it is told that the database is away: a session that was told to end may do so only now.
    private static func patiently(_ send: () async throws -> TestResponse) async throws -> TestResponse {
        var reply: TestResponse?
        try await eventually(every: .milliseconds(100)) {
            reply = try await send()
            return reply?.status != 503
        }
        return try #require(reply)
    }

    /// What is wrong in the end. A connection may just have been lost: then it is asked again.
    private static func findings(_ app: TestApplication) async throws -> [String] {
        var found: [String]?
        try await eventually(every: .milliseconds(100)) {
            found = try? await app.execute(FindWrongCounters())
            return found != nil
        }
        return try #require(found)
    }
}

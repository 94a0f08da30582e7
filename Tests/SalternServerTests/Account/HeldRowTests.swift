import HTTPCore
import Postgres
import SalternTesting
import Synchronization
import Testing

@testable import SalternServer

/// What does not wait for a row that somebody holds.
@Suite struct HeldRowTests {
    @Test func `the use of a session that somebody holds is not waited for`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            app.clock.advance(by: .seconds(120))
            let statuses = try await HeldRow.hold(LockSessions(), in: app) { _ in
                let bob = try await app.register()
                return [
                    try await ada.client.get("/v1/account").status, try await bob.client.get("/v1/account").status,
                ]
            }
            #expect(statuses == [200, 200])
            #expect(try await ada.client.get("/v1/account").status == 200)
        }
    }

    private struct LockSessions: Statement {
        typealias Row = Void
        static let sql: SQL<Self> = "SELECT FROM saltern.sessions FOR UPDATE"
    }

    @Test func `a purge leaves an account that is held to the next one, and goes on`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let bob = try await app.register()
            for account in [ada, ada, ada, bob, bob] {
                _ = try await account.client.delete(try await account.createItem(), ["If-Match": "*"])
                app.clock.advance(by: .seconds(1))
            }
            app.clock.advance(by: .seconds(40 * 86_400))
            let now = app.clock.now
            let counts = Mutex<[Int]>([])
            @Sendable func purge() async throws -> Purge.Report? {
                let postgres = app.postgres
                return try await app.run {
                    try await Purge(
                        database: postgres, sessions: SessionPolicy(idleTimeout: .seconds(100 * 86_400)),
                        policy: PurgePolicy(biteSize: 1), now: now
                    ).run { count in counts.withLock { $0.append(count) } }
                }
            }
            let report = try await HeldRow.account(ada, in: app) { _ in try await purge() }
            #expect(report == Purge.Report(contents: 2, skippedAccounts: 1))
            #expect(counts.withLock { $0.contains(1) && $0.last == 2 }, "each bite is told")
            #expect(try await purge() == Purge.Report(contents: 3))
        }
    }

    @Test func `ending the other sessions counts those that their owner knows of`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            _ = try await app.logIn(ada)
            _ = try await app.openRestrictedSession(ada)
            #expect(try await ada.client.delete("/v1/sessions").integer("ended") == 1)
        }
    }
}

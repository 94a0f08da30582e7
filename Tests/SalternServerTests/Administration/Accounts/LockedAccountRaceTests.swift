import Cryptography
import Foundation
import HTTPCore
import Postgres
import SalternTesting
import Testing

@testable import SalternServer

/// A request that reads looks at its session and not at the account: so a locked account must have none, whoever opened
/// one at that moment.
@Suite struct LockedAccountRaceTests {
    /// A session as a log-in writes it, with its token.
    private struct WrittenSession: Sendable {
        let token: String
        let insertion: InsertSession

        init(_ account: TestAccount, now: Timestamp) throws {
            let id = try #require(AccountID(pathParameter: account.id))
            let secret = SecureRandom.bytes(SessionToken.secretByteCount)
            token = SessionToken.prefix + Base64URL.encodeToString(Array(id.uuid.bytes) + secret)
            let hash = TokenHash(SHA256.hash(secret))
            insertion = InsertSession(
                accountID: id, tokenHash: hash, sessionID: .random(), deviceName: nil, now: now,
                expiresAt: now + .seconds(3_600))
        }
    }

    private static func lock(_ account: TestAccount, _ app: TestApplication) async throws
        -> AccountAdministration.Outcome
    {
        try await AccountAdministrationTests.administer(app) {
            try await $0.lock(.userid(account.userid), by: InviteTests.signature(app))
        }
    }

    @Test func `a session that is being opened while its account is locked ends with the others`() async throws {
        try await TestApplication.with(connections: 2) { app in
            let ada = try await app.register()
            let opened = try WrittenSession(ada, now: app.clock.now)
            let keep = KeepAccount(accountID: opened.insertion.accountID)
            // A log-in of another node, in the middle of its transaction.
            let locking = try await HeldRow.hold(keep, in: app) { held in
                _ = try await held.execute(opened.insertion)
                let locking = Task { try await Self.lock(ada, app) }
                try await held.waiters(1)
                return locking
            }
            #expect(try await locking.value.sessionsEnded == 2)
            #expect(try await app.client.with(token: opened.token).get("/v1/account").status == 401)
        }
    }

    @Test func `a log-in that comes while the account is being locked opens no session`() async throws {
        try await TestApplication.with(connections: 2) { app in
            let ada = try await app.register()
            let id = try #require(AccountID(pathParameter: ada.id))
            let logIn = try await HeldRow.account(ada, in: app) { held in
                _ = try await held.execute(SetLock(accountID: id, lockedAt: app.clock.now))
                let removal = RemoveAllSessions(accountID: id, exception: nil, now: app.clock.now)
                _ = try await held.execute(RecordSessionEnds(removal: removal))
                _ = try await held.execute(removal)
                let logIn = Task { try? await app.logIn(ada) }
                try await held.waiters(1)
                return logIn
            }
            #expect(await logIn.value == nil)
            #expect(try await app.execute(CountRows()).first?[2] == 0)
        }
    }

    @Test func `no read that is sent after the lock of its account succeeds, on any node`() async throws {
        try await TestApplication.with(connections: 4) { app in
            try await TestApplication.with(app.configuration, app.database, clock: app.clock, connections: 4) { other in
                for _ in 0..<6 {
                    let ada = try await app.register()
                    let isLocked = SessionRaceTests.Flag()
                    let late = try await withThrowingTaskGroup(of: Int.self) { group in
                        for number in 0..<8 {
                            let node = number.isMultiple(of: 2) ? app : other
                            group.addTask { try await Self.read(node, ada, until: isLocked) }
                        }
                        _ = try await Self.lock(ada, app)
                        isLocked.set()
                        return try await group.reduce(0, +)
                    }
                    #expect(late == 0)
                }
            }
        }
    }

    /// Logs in and reads with it, until the account is locked and for some while longer.
    /// - Returns: How many reads succeeded that were sent after the lock had been told.
    private static func read(
        _ app: TestApplication, _ account: TestAccount, until isLocked: SessionRaceTests.Flag
    ) async throws -> Int {
        var late = 0
        var sentLate = 0
        var client = account.client
        while sentLate < 5 {
            let isLate = isLocked.isSet
            if isLate { sentLate += 1 } else if let fresh = try? await app.logIn(account) { client = fresh }
            let reply = try await app.client.with(token: client.token).get("/v1/changes?limit=1")
            if isLate, reply.status != 401 { late += 1 }
        }
        return late
    }

    @Test func `sessions of an account that was locked by hand end when it is locked, or by the migration`()
        async throws
    {
        try await TestApplication.with { app in
            for isMigration in [false, true] {
                let ada = try await app.register()
                let bob = try await app.register()
                try await app.administer(
                    "UPDATE saltern.accounts SET locked_at = now() WHERE account_id = '\(ada.id)'")
                // What the handbook says of it: reads go on, writes do not.
                #expect(try await ada.client.get("/v1/account").status == 200)
                let written = try await ada.client.put(
                    "/v1/items/\(Fixtures.uuid())", ItemTests.item(plaintext: 16), ["If-None-Match": "*"])
                #expect(written.status == 401)
                if isMigration {
                    try await app.administer(try Self.sessionsOfLockedAccounts())
                } else {
                    let outcome = try await Self.lock(ada, app)
                    #expect(outcome.isChanged && outcome.sessionsEnded == 1)
                }
                #expect(try await ada.client.get("/v1/account").status == 401)
                #expect(try await bob.client.get("/v1/account").status == 200)
            }
        }
    }

    /// The migration's statement; the others of it can be executed once only.
    private static func sessionsOfLockedAccounts() throws -> String {
        let sql = Schema.migrations[8].sql
        let start = try #require(sql.range(of: "DELETE FROM saltern.sessions"))
        let end = try #require(sql.range(of: ";", range: start.lowerBound..<sql.endIndex))
        return String(sql[start.lowerBound..<end.upperBound])
    }
}

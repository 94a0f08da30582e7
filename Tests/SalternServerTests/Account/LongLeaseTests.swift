import HTTPCore
import SalternTesting
import Testing

@testable import Postgres
@testable import SalternServer

/// What may take minutes: of one client network one such transaction is under way at a time.
@Suite struct LongLeaseTests {
    enum Long: CaseIterable, Sendable {
        case delete, commitRotation, openRotation
    }

    private static func delete(_ account: TestAccount) async throws -> Int {
        try await account.client.send(
            .delete, "/v1/account", body: TestClient.document(account.currentKey)
        ).status
    }

    /// Makes what an act needs, and returns the act.
    private static func prepare(
        _ long: Long, _ account: TestAccount
    ) async throws -> @Sendable () async throws -> Int {
        switch long {
        case .delete: return { try await delete(account) }
        case .openRotation:
            return { try await account.client.post("/v1/rotations", account.currentKey).status }
        case .commitRotation:
            _ = try await account.createItem()
            var opened = RotationClient(account)
            try await opened.open()
            try await opened.stageAll()
            let rotation = opened
            return { try await rotation.commit().status }
        }
    }

    /// How many requests wait for the turn of an account, a network or the like.
    private static func waiting(_ app: TestApplication) async throws -> Int {
        let postgres = app.postgres
        return try await app.run { postgres.keys.counts.waiting }
    }

    @Test(arguments: Long.allCases)
    func `while one is under way, further ones of the same network wait, and what is short goes on`(
        _ long: Long
    ) async throws {
        try await TestApplication.with(connections: 2) { app in
            let (ada, bob, eve) = (try await app.register(), try await app.register(), try await app.register())
            let act = try await Self.prepare(long, bob)
            let isDone = SessionRaceTests.Flag()
            let (first, second) = try await HeldRow.account(ada, in: app) { held in
                let first = Task { try await Self.delete(ada) }
                try await held.waiters(1)
                let second = Task {
                    defer { isDone.set() }
                    return try await act()
                }
                try await eventually {
                    if isDone.isSet { return true }
                    return try await Self.waiting(app) > 0
                }
                let batch: JSONValue = ["operations": [BatchTests.put(Fixtures.uuid(), 0, ItemTests.item())]]
                #expect(try await eve.client.post("/v1/items/batch", batch).status == 200)
                #expect(!isDone.isSet)
                return (first, second)
            }
            #expect(try await first.value == 204)
            let status = try await second.value
            #expect((200..<300).contains(status), "\(status)")
        }
    }
}

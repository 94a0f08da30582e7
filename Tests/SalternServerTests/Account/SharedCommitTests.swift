import HTTPCore
import Postgres
import SalternTesting
import Synchronization
import Testing

@testable import SalternServer

/// Which requests share a transaction when they come while another one commits. (On a cluster a group has one request.)
@Suite(.enabled(if: !TestEnvironment.isCluster)) struct SharedCommitTests {
    /// What is frequent and short.
    enum Hot: CaseIterable, Sendable {
        case replace, create, delete, logIn
    }

    /// One of these requests, of an account of its own.
    private struct Visit: Sendable {
        let account: TestAccount
        let item: String

        init(_ app: TestApplication) async throws {
            account = try await app.register()
            item = try await account.createItem()
            // The first replacement in ten minutes also keeps a version.
            #expect(try await account.client.put(item, ItemTests.item(), ["If-Match": "*"]).status == 200)
        }

        /// - Returns: What was written.
        func make(_ hot: Hot, _ app: TestApplication) async throws -> UUID {
            switch hot {
            case .replace: try written(await account.client.put(item, ItemTests.item(), ["If-Match": "*"]), 200)
            case .create:
                try written(
                    await account.client.put(
                        "/v1/items/\(Fixtures.uuid())", ItemTests.item(), ["If-None-Match": "*"]), 201)
            case .delete: try written(await account.client.delete(item, ["If-Match": "*"]), 200)
            case .logIn:
                try written(
                    await app.client.post(
                        "/v1/sessions",
                        ["userid": .string(account.userid), "passwordKey": .string(account.passwordKey)]), 201,
                    "session.id")
            }
        }

        private func written(_ reply: TestResponse, _ status: Int, _ path: String = "id") throws -> UUID {
            #expect(reply.status == status, "\(reply)")
            return try #require(reply.string(path).flatMap(UUID.init))
        }
    }

    /// How many were done, as many tasks count.
    private final class Count: Sendable {
        private let count = Atomic(0)
        var value: Int { count.load(ordering: .sequentiallyConsistent) }
        func increase() { count.add(1, ordering: .sequentiallyConsistent) }
    }

    /// Makes requests while a commit is held, and says in which transactions they were carried out.
    private static func transactions(
        of requests: [Hot], _ app: TestApplication, _ commit: HeldCommit
    ) async throws -> [Int64] {
        var visits: [Visit] = []
        for _ in requests { visits.append(try await Visit(app)) }
        let done = Count()
        let tasks = try await commit.hold {
            let tasks = zip(visits, requests).map { visit, hot in
                Task {
                    defer { done.increase() }
                    return try await visit.make(hot, app)
                }
            }
            // All wait for the next group. One that is done was carried out elsewhere.
            try await eventually {
                let lanes = try await commit.lanes()
                return done.value > 0 || lanes.inUse == 1 && lanes.waiting == requests.count
            }
            #expect(done.value == 0)
            return tasks
        }
        var ids: [UUID] = []
        for task in tasks { ids.append(try await task.value) }
        let transactions = try await app.execute(FindTransactions(ids: ids))
        #expect(transactions.count == ids.count)
        return transactions
    }

    @Test(arguments: Hot.allCases)
    func `what is frequent and comes while a commit is under way shares the next one`(_ hot: Hot) async throws {
        try await TestApplication.with(connections: 1) { app in
            let commit = try await HeldCommit(in: app)
            let transactions = try await Self.transactions(of: [hot, hot, hot], app, commit)
            #expect(Set(transactions).count == 1, "\(transactions)")
        }
    }

    @Test func `all kinds of them share one transaction`() async throws {
        try await TestApplication.with(connections: 1) { app in
            let commit = try await HeldCommit(in: app)
            let transactions = try await Self.transactions(of: Hot.allCases + Hot.allCases, app, commit)
            #expect(Set(transactions).count == 1, "\(transactions)")
        }
    }

    @Test func `uses of sessions are recorded each on its own, and nobody waits for that`() async throws {
        try await TestApplication.with(connections: 1) { app in
            let commit = try await HeldCommit(in: app)
            var accounts: [TestAccount] = []
            for _ in 0..<3 { accounts.append(try await app.register()) }
            app.clock.advance(by: .seconds(120))
            let statuses = try await commit.hold {
                var statuses: [Int] = []
                for account in accounts { statuses.append(try await account.client.get("/v1/account").status) }
                return statuses
            }
            #expect(statuses == [200, 200, 200])
            for account in accounts { try await account.useIsRecorded(in: app) }
            let ids = accounts.compactMap { UUID($0.sessionID) }
            let transactions = try await app.execute(FindTransactions(ids: ids))
            #expect(Set(transactions).count == 3, "\(transactions)")
        }
    }
}

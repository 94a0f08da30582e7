import Cryptography
import class Foundation.ProcessInfo
import HTTPCore
import Postgres
import SalternTesting
import Testing

@testable import SalternServer

/// Two nodes, with the statements that share transactions, while connections are cut and rows are held.
///
/// The test lasts for ``PropertyTests/duration``. The requests follow from a random seed, which a failure prints, and
/// `SALTERN_GROUP_SEED` repeats. Their timing and the cuts are not repeatable.
@Suite(.timeLimit(.minutes(60)), .enabled(if: !TestEnvironment.isCluster)) struct ChangeLedgerTests {
    private static let environment = ProcessInfo.processInfo.environment

    private static let leastAccounts = 40
    private static let workers = 20
    private static let changesOfWorker = 12
    /// Few, so that the same one is changed by many.
    private static let itemsOfAccount = 24

    @Test func `whatever goes wrong, what two nodes have told of changes and log-ins is there, and counted`()
        async throws
    {
        let seed = UInt64(Self.environment["SALTERN_GROUP_SEED"] ?? "") ?? .random(in: 0...0xFFFF_FFFF)
        var random = SeededGenerator(seed: seed)
        let why: Comment = "SALTERN_GROUP_SEED=\(seed)"
        try await TemporaryDatabase.with(migrations: Schema.migrations) { database in
            try await database.administer("UPDATE saltern.plans SET max_sessions = 10000")
            let ledgers = try await database.withProxy { proxied, proxy in
                let configuration = TestApplication.configuration
                let clock = ManualClock()
                return try await TestApplication.with(configuration, proxied, clock: clock) { first in
                    try await TestApplication.with(configuration, proxied, clock: clock) { second in
                        var ledgers: [ChangeLedger] = []
                        let end = ContinuousClock.now + PropertyTests.duration
                        // Each time with other accounts: those that two nodes have met at go elsewhere for a while.
                        repeat {
                            ledgers += try await Self.round([first, second], proxy, why, &random)
                        } while ContinuousClock.now < end || ledgers.count < Self.leastAccounts
                        return ledgers
                    }
                }
            }
            try await SeparateClient.with(database.administratorURL) { administrator in
                // The nodes have gone; what PostgreSQL has begun for them comes to its end.
                try await eventually {
                    try await administrator.run { try await $0.execute(CountServerSessions()) } == [0]
                }
                var done = 0
                for ledger in ledgers { done += try await ledger.check(administrator, why) }
                let (wrong, grouped) = try await administrator.run { postgres in
                    (
                        try await postgres.execute(FindWrongCounters()),
                        try await postgres.execute(CountGrouped()).first ?? 0
                    )
                }
                #expect(wrong == [], why)
                #expect(done > 200 && grouped > 20, "\(done) were done, \(grouped) rows share transactions: \(why)")
            }
        }
    }

    /// Many who change some accounts: one that all of them want, and others that are wanted on one node, or on both.
    private static func round(
        _ nodes: [TestApplication], _ proxy: CuttingProxy, _ why: Comment, _ random: inout SeededGenerator
    ) async throws -> [ChangeLedger] {
        var ledgers: [ChangeLedger] = []
        for _ in 0..<10 { ledgers.append(ChangeLedger(try await patiently { try await nodes[0].register() })) }
        let ids = (0..<itemsOfAccount).map { _ in UUID(high: random.next(), low: random.next()) }
        let isOver = SessionRaceTests.Flag()
        let faultSeed = random.next()
        let workers = nodes.enumerated().flatMap { number, node in
            // The first is for everybody, the second for both nodes, four more for this one.
            let own = [ledgers[1]] + ledgers[(2 + number * 4)..<(6 + number * 4)]
            return (0..<Self.workers).map { _ in
                Worker(node: node, hot: ledgers[0], others: own, ids: ids, why: why, seed: random.next())
            }
        }
        let accounts = ledgers.map(\.account)
        async let cutting: Void = cut(proxy, until: isOver, faultSeed)
        async let holding: Void = hold(accounts, nodes[0], until: isOver, faultSeed)
        await withTaskGroup(of: Void.self) { group in
            for worker in workers { group.addTask { await worker.work(Self.changesOfWorker) } }
        }
        isOver.set()
        _ = try await (cutting, holding)
        return ledgers
    }

    private static func cut(
        _ proxy: CuttingProxy, until isOver: SessionRaceTests.Flag, _ seed: UInt64
    ) async throws {
        var random = SeededGenerator(seed: seed)
        while !isOver.isSet {
            let direction = CuttingProxy.Direction.allCases.randomElement(using: &random) ?? .toClient
            proxy.cut(direction, after: .random(in: 0..<40_000, using: &random))
            try await Task.sleep(for: .milliseconds(.random(in: 20..<100, using: &random)))
        }
        proxy.disarm()
    }

    /// An admin with psql.
    private static func hold(
        _ accounts: [TestAccount], _ app: TestApplication, until isOver: SessionRaceTests.Flag, _ seed: UInt64
    ) async throws {
        var random = SeededGenerator(seed: ~seed)
        while !isOver.isSet {
            guard let account = accounts.randomElement(using: &random) else { return }
            try await HeldRow.account(account, in: app) { _ in try await Task.sleep(for: .milliseconds(15)) }
            try await Task.sleep(for: .milliseconds(60))
        }
    }

    /// Does it again while connections are lost.
    private static func patiently<Result>(_ body: () async throws -> Result) async throws -> Result {
        var result: Result?
        try await eventually(every: .milliseconds(100)) {
            result = try? await body()
            return result != nil
        }
        return try #require(result)
    }

    /// Somebody who does one thing after another, and notes what he is told.
    private struct Worker: Sendable {
        let node: TestApplication
        let hot: ChangeLedger
        let others: [ChangeLedger]
        let ids: [UUID]
        let why: Comment
        let seed: UInt64

        func work(_ count: Int) async {
            var random = SeededGenerator(seed: seed)
            var seen: [String: Int64] = [:]
            for _ in 0..<count {
                let ledger =
                    Int.random(in: 0..<5, using: &random) == 0 ? hot : others.randomElement(using: &random) ?? hot
                let item = ids.randomElement(using: &random) ?? .zero
                switch Int.random(in: 0..<20, using: &random) {
                case 0..<3: await logIn(ledger)
                case 3..<6: await change(ledger, item, nil, ["If-Match": "*"], 200, &seen)
                case 6..<12: await change(ledger, item, SecureRandom.bytes(60), ["If-Match": "*"], 200, &seen)
                default: await change(ledger, item, SecureRandom.bytes(60), ["If-None-Match": "*"], 201, &seen)
                }
            }
        }

        private func logIn(_ ledger: ChangeLedger) async {
            let (userid, key) = (ledger.account.userid, ledger.account.passwordKey)
            let body: JSONValue = ["userid": .string(userid), "passwordKey": .string(key)]
            guard let reply = try? await node.client.post("/v1/sessions", body) else {
                return ledger.note(session: nil)
            }
            #expect([201, 429, 503].contains(reply.status), "\(reply) \(why)")
            if reply.status == 201 {
                ledger.note(session: reply.string("session.id").flatMap(UUID.init))
            } else if reply.status == 503 {
                ledger.note(session: nil)
            }
        }

        /// - Parameter body: Nil to delete the item.
        private func change(
            _ ledger: ChangeLedger, _ item: UUID, _ body: [UInt8]?, _ fields: [String: String], _ success: Int,
            _ seen: inout [String: Int64]
        ) async {
            let client = node.client.with(token: ledger.account.client.token)
            let path = "/v1/items/\(item)"
            let reply: TestResponse?
            if let body {
                let json: JSONValue = ["format": "aes-256-gcm", "body": .string(Base64.encodeToString(body))]
                reply = try? await client.put(path, json, fields)
            } else {
                reply = try? await client.delete(path, fields)
            }
            guard let reply, reply.status != 503 else { return ledger.note(item, body, .inDoubt) }
            guard reply.status == success, let revision = reply.integer("revision") else {
                #expect([404, 412, 429].contains(reply.status), "\(reply) \(why)")
                return ledger.note(item, body, .refused)
            }
            ledger.note(item, body, .done(revision: Int64(revision)))
            #expect(Int64(revision) > seen[ledger.account.id] ?? 0, "revisions increase: \(why)")
            seen[ledger.account.id] = Int64(revision)
        }
    }
}

/// What the nodes have left at work.
private struct CountServerSessions: Statement {
    typealias Row = Int64
    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND usename <> current_user AND state <> 'idle'
        """
}

/// Rows that were last written together with others: each request writes one.
private struct CountGrouped: Statement {
    typealias Row = Int64
    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT coalesce(sum(n.number), 0)::bigint FROM (
            SELECT count(*) AS number FROM (
                SELECT xmin::text AS writer FROM saltern.items UNION ALL SELECT xmin::text FROM saltern.sessions
            ) written GROUP BY written.writer
        ) n WHERE n.number > 1
        """
}

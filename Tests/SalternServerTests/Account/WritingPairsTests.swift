import HTTPCore
import Postgres
import SalternTesting
import Testing

@testable import SalternServer

@Suite struct WritingPairsTests {
    /// How often each of two acts is done at once.
    private static let copies = 3

    /// Runs two acts against each other on one account, and returns what went wrong.
    private static func meet(
        _ acts: [WritingAct], _ app: TestApplication, _ owner: SeparateClient
    ) async throws -> [String] {
        let written = try await WrittenAccount(app)
        var runs: [(WritingAct, WritingAct.Run)] = []
        for act in acts { runs.append((act, try await act.prepare(written, owner))) }
        return try await withThrowingTaskGroup(of: String?.self) { group in
            for index in 0..<Self.copies {
                for (act, run) in runs {
                    group.addTask {
                        let status = try await run(index)
                        return status < 500 ? nil : "\(act) is \(status) (\(acts))"
                    }
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }.compactMap { $0 }
        }
    }

    /// Runs pairs, several at a time, each on an account of its own.
    private static func meet(
        _ pairs: [[WritingAct]], lanes: Int, _ app: TestApplication, _ owner: SeparateClient
    ) async throws -> [String] {
        try await withThrowingTaskGroup(of: [String].self) { group in
            var rest = pairs[...]
            for pair in rest.prefix(lanes) { group.addTask { try await meet(pair, app, owner) } }
            rest = rest.dropFirst(lanes)
            var findings: [String] = []
            while let found = try await group.next() {
                findings += found
                if let pair = rest.popFirst() { group.addTask { try await meet(pair, app, owner) } }
            }
            return findings
        }
    }

    /// Runs `body` on a database that tells of deadlocks at once, and says how many there were.
    static func countingDeadlocks(
        _ body: (TestApplication, SeparateClient) async throws -> Void
    ) async throws -> Int64 {
        try await TemporaryDatabase.with(migrations: Schema.migrations) { database in
            try await SeparateClient.with(database.administratorURL) { administrator in
                _ = try await administrator.run {
                    try await $0.execute(TellDeadlocks())
                }
                try await TestApplication.with(
                    TestApplication.configuration, database, clock: ManualClock(), connections: 4
                ) { app in
                    try await SeparateClient.with(database.ownerURL, transactions: 6) { try await body(app, $0) }
                }
                // The connections that met them have ended, and what they counted is there.
                return try await administrator.run { try await $0.execute(CountDeadlocks()).first ?? -1 }
            }
        }
    }

    @Test func `whatever is written at once, nothing waits for each other in a circle`() async throws {
        let deadlocks = try await Self.countingDeadlocks { app, owner in
            try await app.administer("UPDATE saltern.plans SET max_sessions = 2 WHERE plan = 'default'")
            var pairs: [[WritingAct]] = []
            for (index, act) in WritingAct.all.enumerated() {
                for other in WritingAct.all[index...] where act.meets(other) { pairs.append([act, other]) }
            }
            pairs = PropertyTests.cases(pairs)
            // A purge is of all accounts: it meets one pair at a time.
            let withPurge = pairs.filter { $0.contains { $0.description == "purge" } }
            let others = pairs.filter { !$0.contains { $0.description == "purge" } }
            let wrong = try await Self.meet(others.shuffled(), lanes: 4, app, owner)
            #expect(wrong.isEmpty, "\(wrong)")
            let wrongWithPurge = try await Self.meet(withPurge, lanes: 1, app, owner)
            #expect(wrongWithPurge.isEmpty, "\(wrongWithPurge)")
            #expect(try await app.execute(FindWrongCounters()) == [])
        }
        #expect(deadlocks == 0)
    }

    @Test func `an account is deleted while the holders of its shares take them back`() async throws {
        let deadlocks = try await Self.countingDeadlocks { app, owner in
            for _ in 0..<12 {
                let ada = try await app.register()
                var shares: [TestShare] = []
                for _ in 0..<12 { shares.append(try await TestShare(ada.client)) }
                let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
                    group.addTask {
                        try await ada.client.send(
                            .delete, "/v1/account", body: TestClient.document(ada.currentKey)
                        ).status
                    }
                    for share in shares {
                        group.addTask {
                            try await app.client.with(token: share.manageToken).delete(share.path).status
                        }
                    }
                    return try await group.reduce(into: []) { $0.append($1) }
                }
                #expect(statuses.allSatisfy { $0 == 204 || $0 == 404 }, "\(statuses)")
            }
        }
        #expect(deadlocks == 0)
    }
}

/// Makes PostgreSQL look for circles after some milliseconds instead of a second, in sessions that begin later.
private struct TellDeadlocks: Statement {
    typealias Row = Void
    static let sql: SQL<Self> = """
        DO $$ BEGIN
            EXECUTE format('ALTER DATABASE %I SET deadlock_timeout = 20', current_database());
        END $$
        """
}

private struct CountDeadlocks: Statement {
    typealias Row = Int64
    static let isReadOnly = true
    static let sql: SQL<Self> = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
}

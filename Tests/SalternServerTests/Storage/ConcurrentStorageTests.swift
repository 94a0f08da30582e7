import HTTPCore
import Postgres
import SalternTesting
import Testing

@testable import SalternServer

/// Many devices of an account change, delete and restore the same items at once, while its keys are rotated and a purge
/// runs: the counters equal the rows, and the plan holds.
@Suite struct ConcurrentStorageTests {
    private static let plan = StorageBound(items: 8, itemBytes: 400, bytes: 1_500, sessions: 3, shares: 3)
    private static let rounds = 6
    private static let devices = 6
    private static let steps = 6

    @Test(arguments: PropertyTests.databases)
    func `counters equal the rows after whatever is done at once`(_ seed: UInt64) async throws {
        try await TestApplication.with(connections: 4) { app in
            try await app.administer(FindStoredAmounts.function)
            try await app.setPlan(Self.plan)
            let work = try await [SharedWork(app), SharedWork(app)]
            for round in 0..<Self.rounds {
                app.clock.advance(by: ItemVersion.interval)
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for (number, shared) in work.enumerated() {
                        for device in 0..<Self.devices {
                            let random = SeededGenerator(
                                seed: seed &* 10_000 &+ UInt64(round * 100 + number * 10 + device))
                            group.addTask { try await shared.device(random, steps: Self.steps) }
                        }
                        if round % 2 == 1 { group.addTask { try await shared.rotate() } }
                    }
                    if round % 3 == 2 { group.addTask { try await Self.purge(app) } }
                    try await group.waitForAll()
                }
                #expect(try await app.execute(FindWrongCounters()) == [], "round \(round) of \(seed)")
                for shared in work {
                    try await app.expectBounds(Self.plan, of: shared.account.id, "round \(round) of \(seed)")
                }
            }
            var done: [String: Int] = [:]
            for shared in work { done.merge(await shared.done, uniquingKeysWith: +) }
            for name in ["create", "replace", "delete", "restore", "batch", "keyring", "rotate"] {
                #expect(done[name] ?? 0 > 0, "\(name): \(done)")
            }
        }
    }

    /// So much later that everything has expired but the sessions.
    private static func purge(_ app: TestApplication) async throws {
        let now = app.clock.now + .seconds(100 * 86_400)
        _ = try await app.run { [postgres = app.postgres] in
            try await Purge(
                database: postgres, sessions: SessionPolicy(idleTimeout: .seconds(200 * 86_400)),
                policy: PurgePolicy(biteSize: 3), now: now
            ).run()
        }
    }
}

/// What several devices of one account do.
private actor SharedWork {
    nonisolated let account: TestAccount
    private(set) var done: [String: Int] = [:]
    private nonisolated let ids: [String]
    private var key: String
    private var rotations = 0

    init(_ app: TestApplication) async throws {
        account = try await app.register()
        key = account.passwordKey
        ids = (0..<6).map { _ in Fixtures.uuid() }
        let keyring: JSONValue = ["keyring": .string(Fixtures.sealed())]
        #expect(try await account.client.put("/v1/account/keyring", keyring, ["If-None-Match": "*"]).status == 201)
    }

    private func note(_ name: String, _ reply: TestResponse) {
        #expect(reply.status < 500, "\(name): \(reply)")
        if reply.status < 300 { done[name, default: 0] += 1 }
    }

    nonisolated func device(_ seeded: SeededGenerator, steps: Int) async throws {
        var random = seeded
        for _ in 0..<steps {
            let (name, reply) = try await step(&random)
            await note(name, reply)
        }
    }

    private nonisolated func step(_ random: inout SeededGenerator) async throws -> (String, TestResponse) {
        let client = account.client
        let id = ids[Int.random(in: 0..<ids.count, using: &random)]
        let path = "/v1/items/\(id)"
        let item = StorageBoundTests.item(Int.random(in: 0...150, using: &random))
        switch Int.random(in: 0..<11, using: &random) {
        case 0, 1: return ("create", try await client.put(path, item, ["If-None-Match": "*"]))
        case 2, 3, 4: return ("replace", try await client.put(path, item, ["If-Match": "*"]))
        case 5, 6: return ("delete", try await client.delete(path, ["If-Match": "*"]))
        case 7: return ("restore", try await client.send(.post, path + "/restore", fields: ["If-Match": "*"]))
        case 8:
            let keyring: JSONValue = ["keyring": .string(Fixtures.sealed())]
            return ("keyring", try await client.put("/v1/account/keyring", keyring, ["If-Match": "*"]))
        default:
            // All or nothing: a batch that deletes what is not there would change nothing.
            let deletes = Bool.random(using: &random) ? id : nil
            let operations = ids.shuffled(using: &random).prefix(3).filter { $0 != deletes }.map {
                BatchTests.put($0, nil, StorageBoundTests.item(Int.random(in: 0...80, using: &random)))
            }
            let all = operations + (deletes.map { [BatchTests.delete($0)] } ?? [])
            return ("batch", try await client.post("/v1/items/batch", ["operations": .array(all)]))
        }
    }

    /// Gives the account another key. It may be that an item is changed meanwhile: then nothing happens.
    func rotate() async throws {
        var rotation = RotationClient(account)
        let opened = try await account.client.post("/v1/rotations", ["currentPasswordKey": .string(key)])
        rotation.id = try #require(opened.string("id"), "\(opened)")
        for _ in 0..<20 {
            try? await rotation.stageAll()
            rotations += 1
            let newKey = Fixtures.passwordKey("key \(rotations) of \(account.id)")
            let keyring = try await account.client.get("/v1/account/keyring").integer("revision")
            var members: [(name: String, value: JSONValue)] = [
                (name: "currentPasswordKey", value: .string(key)), (name: "passwordKey", value: .string(newKey)),
                (name: "kdf", value: ["iterations": 600_000]),
            ]
            if let keyring {
                members.append((name: "keyring", value: .string(Fixtures.sealed())))
                members.append((name: "keyringRevision", value: .integer(Int64(keyring))))
            }
            let reply = try await account.client.post(
                "/v1/rotations/\(rotation.id)/commit", .object(JSONObject(members)))
            note("rotate", reply)
            if reply.status == 200 {
                key = newKey
                return
            }
        }
        _ = try await account.client.delete("/v1/rotations/\(rotation.id)")
    }
}

import HTTPCore
import SalternTesting
import Synchronization
import Testing

/// Sessions that end while many requests use them, on two nodes.
@Suite struct SessionRaceTests {
    final class Flag: Sendable {
        private let flag = Atomic<Bool>(false)
        var isSet: Bool { flag.load(ordering: .sequentiallyConsistent) }
        func set() { flag.store(true, ordering: .sequentiallyConsistent) }
    }

    /// What the users of a session have seen.
    private struct Seen: Sendable {
        var successes = 0
        /// Requests that succeeded though they were sent after the end had been told.
        var late = 0
        var others: [Int] = []
    }

    /// Uses a session until it is refused.
    private static func use(_ client: TestClient, begun: Flag, ended: Flag, writes: Bool) async throws -> Seen {
        var seen = Seen()
        while true {
            let isLate = ended.isSet
            let reply =
                writes
                ? try await client.put(
                    "/v1/items/\(Fixtures.uuid())", ItemTests.item(plaintext: 16), ["If-None-Match": "*"])
                : try await client.get("/v1/account")
            switch reply.status {
            case 200, 201:
                seen.successes += 1
                begun.set()
                if isLate { seen.late += 1 }
            case 401: return seen
            default:
                seen.others.append(reply.status)
                return seen
            }
        }
    }

    /// Lets eight use the session on two nodes, ends it with `end`, and looks whether anything of it comes later.
    private static func race(
        _ app: TestApplication, _ other: TestApplication, _ ada: TestAccount, victim: TestClient,
        end: (TestClient) async throws -> TestResponse
    ) async throws {
        let (begun, ended) = (Flag(), Flag())
        let (seen, itemsAtEnd) = try await withThrowingTaskGroup(of: Seen.self) { group in
            for number in 0..<8 {
                let node = number.isMultiple(of: 2) ? app : other
                let client = node.client.with(token: victim.token)
                group.addTask { try await use(client, begun: begun, ended: ended, writes: number < 4) }
            }
            try await eventually(every: .milliseconds(1)) { begun.isSet }
            try await Task.sleep(for: .milliseconds(Int.random(in: 0...40)))
            #expect(try await [200, 204].contains(end(ada.client).status))
            ended.set()
            // A write that was under way has either been counted by now or never will be.
            let items = try await ada.client.get("/v1/account").integer("usage.items")
            return (try await group.reduce(into: []) { $0.append($1) }, items)
        }
        #expect(seen.reduce(0) { $0 + $1.successes } > 0)
        #expect(seen.allSatisfy { $0.late == 0 && $0.others.isEmpty }, "\(seen)")
        #expect(try await ada.client.get("/v1/account").integer("usage.items") == itemsAtEnd)
    }

    @Test func `no request that is sent after the end of its session succeeds, on any node`() async throws {
        try await TestApplication.with(connections: 4) { app in
            try await TestApplication.with(app.configuration, app.database, clock: app.clock, connections: 4) { other in
                let ada = try await app.register()
                for round in 0..<12 {
                    let victim = try await app.logIn(ada)
                    try await Self.race(app, other, ada, victim: victim) { client in
                        switch round % 3 {
                        case 0:
                            let list = try await victim.get("/v1/sessions")
                            let count = list.array("sessions")?.count ?? 0
                            let id = (0..<count).first { list.bool("sessions.\($0).current") == true }
                                .flatMap { list.string("sessions.\($0).id") }
                            return try await client.delete("/v1/sessions/\(id ?? "")")
                        case 1: return try await other.client.with(token: client.token).delete("/v1/sessions")
                        default: return try await victim.delete("/v1/sessions/current")
                        }
                    }
                }
            }
        }
    }

    @Test func `of many who end the same session one does`() async throws {
        try await TestApplication.with(connections: 4) { app in
            let ada = try await app.register()
            let phone = try await app.logIn(ada)
            let list = try await ada.client.get("/v1/sessions")
            let index = list.string("sessions.0.id") == ada.sessionID ? 1 : 0
            let id = try #require(list.string("sessions.\(index).id"))
            let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
                for _ in 0..<20 { group.addTask { try await ada.client.delete("/v1/sessions/\(id)").status } }
                return try await group.reduce(into: [Int: Int]()) { $0[$1, default: 0] += 1 }
            }
            #expect(statuses == [204: 1, 404: 19])
            #expect(try await phone.get("/v1/account").status == 401)
            let events = try await ada.client.get("/v1/account/events")
            let ended = try #require(events.array("events")).indices
                .count { events.string("events.\($0).kind") == "session_ended" }
            #expect(ended == 1)
        }
    }

    @Test func `two sessions that end all others leave one of them`() async throws {
        try await TestApplication.with(connections: 4) { app in
            let ada = try await app.register()
            for _ in 0..<10 {
                let clients = [
                    ada.client, try await app.logIn(ada), try await app.logIn(ada), try await app.logIn(ada),
                ]
                let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
                    for client in clients.dropFirst() {
                        group.addTask { try await client.delete("/v1/sessions").status }
                    }
                    return try await group.reduce(into: []) { $0.append($1) }
                }
                #expect(statuses.sorted() == [200, 401, 401])
                var live = 0
                for client in clients where try await client.get("/v1/account").status == 200 { live += 1 }
                #expect(live == 1)
                // The first one is among those that were ended; a new one takes its place.
                let next = try await app.logIn(ada)
                #expect(try await next.delete("/v1/sessions").integer("ended") == 1)
            }
        }
    }

    @Test func `many log-ins at once leave at most eight sessions for each node beyond the plan's`() async throws {
        try await TestApplication.with(connections: 4) { app in
            try await TestApplication.with(app.configuration, app.database, clock: app.clock, connections: 4) { other in
                try await app.administer("UPDATE saltern.plans SET max_sessions = 3")
                let ada = try await app.register()
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for number in 0..<60 {
                        let node = number.isMultiple(of: 2) ? app : other
                        group.addTask { _ = try await node.logIn(ada) }
                    }
                    try await group.waitForAll()
                }
                #expect(try #require(try await app.execute(CountRows()).first)[2] <= 3 + 2 * 8)
                // One of the next eight trims what the nodes have opened since they counted.
                var counts: [Int?] = []
                for _ in 0..<8 {
                    let last = try await app.logIn(ada)
                    counts.append(try await last.get("/v1/account").integer("usage.sessions"))
                }
                #expect(counts.contains(3))
            }
        }
    }
}

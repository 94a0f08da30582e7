import HTTPCore
import Postgres
import SalternTesting
import Synchronization
import Testing

@testable import SalternServer

@Suite struct EventDeliveryTests {
    @Test func `the events of an account arrive in their order, with numbers and names of their audience`() async throws
    {
        try await TestApplication.with { app in
            try await app.createDestination("billing", EventKind.standard)
            let receiver = FakeReceiver()
            let ada = try await app.register()
            let signature = InviteTests.signature(app)
            _ = try await AccountAdministrationTests.administer(app) {
                try await $0.assign("pro", to: .userid(ada.userid), by: signature)
            }
            _ = try await ada.client.put("/v1/account/receipt", ["receipt": "MIIT…"])
            // The same one again is no event.
            _ = try await ada.client.put("/v1/account/receipt", ["receipt": "MIIT…"])
            _ = try await AccountAdministrationTests.administer(app) {
                try await $0.lock(.userid(ada.userid), by: signature)
            }
            _ = try await AccountAdministrationTests.administer(app) {
                try await $0.unlock(.userid(ada.userid), by: signature)
            }
            _ = try await AccountAdministrationTests.administer(app) {
                try await $0.delete(.userid(ada.userid), by: signature)
            }
            try await app.delivering(to: receiver) {
                try await app.wait { try await app.undelivered().isEmpty }
            }
            #expect(
                receiver.received.map(\.type) == [
                    "account.created", "plan.changed", "receipt.stored", "account.locked", "account.unlocked",
                    "account.deleted",
                ])
            #expect(receiver.received.map(\.number) == [1, 2, 3, 4, 5, 6])
            #expect(Set(receiver.received.map(\.sub)).count == 1)
            #expect(Set(receiver.received.map(\.id)).count == 6)
            #expect(!receiver.received[0].sub.contains(ada.id))
            // Nothing of a deleted account stays.
            #expect(try await app.execute(CountEventRows()) == [0])
        }
    }

    @Test func `two destinations get other identifiers and names for the same event`() async throws {
        try await TestApplication.with { app in
            try await app.createDestination("billing")
            try await app.createDestination("crm", audience: "crm", url: "https://crm.example/")
            try await app.createDestination("crm-2", audience: "crm", url: "https://crm.example/2")
            _ = try await app.register()
            let receiver = FakeReceiver()
            try await app.delivering(to: receiver) {
                try await app.wait { receiver.received.count >= 3 }
            }
            #expect(Set(receiver.received.map(\.id)).count == receiver.received.count)
            #expect(Set(receiver.received.map(\.sub)).count == 2)
        }
    }

    @Test func `a failed event delays its account, no other one, and no other destination`() async throws {
        try await TestApplication.with { app in
            try await app.createDestination("billing", EventKind.standard)
            try await app.createDestination("crm", audience: "crm", url: "https://crm.example/", EventKind.standard)
            let failed = Mutex<String?>(nil)
            let isMended = Mutex(false)
            let receiver = FakeReceiver { event in
                guard event.url == "https://receiver.example/hook" else { return .status(200) }
                let isMeant = failed.withLock { sub in
                    if sub == nil { sub = event.sub }
                    return sub == event.sub
                }
                return isMeant && !isMended.withLock({ $0 }) ? .status(500) : .status(200)
            }
            let (ada, bob) = (try await app.register(), try await app.register())
            for account in [ada, bob] { _ = try await account.client.put("/v1/account/receipt", ["receipt": "x"]) }
            try await app.delivering(to: receiver) {
                try await app.wait { try await app.undelivered().count == 2 }
                let waiting = try await app.undelivered()
                #expect(Set(waiting.map(\.accountID)).count == 1 && Set(waiting.map(\.destination)) == ["billing"])
                #expect(waiting.allSatisfy { $0.attempts == 1 && $0.dueAt ?? .distantPast > app.clock.now })
                isMended.withLock { $0 = true }
                app.clock.advance(by: .seconds(10))
                try await app.wait { try await app.undelivered().isEmpty }
            }
            let mine = receiver.received.filter {
                $0.url == "https://receiver.example/hook" && $0.sub == failed.withLock { $0 }
            }
            #expect(mine.map(\.number) == [1, 1, 2] && Set(mine.map(\.id)).count == 2)
        }
    }

    @Test func `a destination that hangs delays no other one`() async throws {
        try await TestApplication.with { app in
            try await app.createDestination("billing", EventKind.standard)
            try await app.createDestination("crm", audience: "crm", url: "https://crm.example/", EventKind.standard)
            let receiver = FakeReceiver { event in
                if event.url == "https://crm.example/" { return .status(200) }
                try? await Task.sleep(for: .seconds(3_600))
                return .failed(.cancelled)
            }
            for _ in 0..<20 { _ = try await app.register() }
            try await app.delivering(to: receiver) {
                try await app.wait { receiver.delivered.count == 20 }
            }
            // Nothing is held by the end of the node.
            let waiting = try await app.undelivered()
            #expect(waiting.count == 20 && waiting.allSatisfy { $0.attempts == 0 })
            #expect(waiting.allSatisfy { $0.dueAt ?? .distantFuture <= app.clock.now + EventLease.duration })
        }
    }

    @Test func `an event is parked after three days of attempts, and the next one shows the gap`() async throws {
        try await TestApplication.with { app in
            try await app.createDestination("billing", EventKind.standard)
            let isMended = Mutex(false)
            let receiver = FakeReceiver { _ in isMended.withLock { $0 } ? .status(200) : .failed(.timedOut) }
            let ada = try await app.register()
            try await app.delivering(to: receiver) {
                try await app.wait { receiver.received.count == 1 }
                app.clock.advance(by: RetrySchedule.lifetime)
                try await app.wait { try await app.undelivered().contains { $0.parkedAt != nil } }
                isMended.withLock { $0 = true }
                _ = try await ada.client.put("/v1/account/receipt", ["receipt": "x"])
                try await app.wait { receiver.delivered.count == 1 }
            }
            #expect(receiver.delivered.map(\.number) == [2])
            let parked = try await app.undelivered(EventAdministration.Selection(isParked: true))
            #expect(parked.map(\.kind) == ["account.created"])

            // An admin can have it attempted again.
            let (id, now) = (try #require(parked.first?.id), app.clock.now)
            let retried = try await AccountAdministrationTests.asOwner(app) {
                try await EventAdministration(database: $0).retry(EventAdministration.Selection(id: id), now: now)
            }
            #expect(retried == 1)
            try await app.delivering(to: receiver) {
                try await app.wait { try await app.undelivered().isEmpty }
            }
            #expect(receiver.delivered.map(\.number) == [2, 1])
        }
    }

    @Test func `410 disables the destination, and a rotation enables it`() async throws {
        try await TestApplication.with { app in
            try await app.createDestination("billing", EventKind.standard)
            let receiver = FakeReceiver { _ in .status(410) }
            let ada = try await app.register()
            try await app.delivering(to: receiver) {
                try await app.wait { try await app.execute(FindDestinations()).first?.isDisabled == true }
            }
            _ = try await ada.client.put("/v1/account/receipt", ["receipt": "x"])
            #expect(receiver.received.count == 1)
            // Nothing is stored for it any more.
            #expect(try await app.undelivered().map(\.kind) == ["account.created"])
            let (signature, masterKey) = (InviteTests.signature(app), app.configuration.masterKey)
            let name = try #require(DestinationName("billing"))
            try await AccountAdministrationTests.asOwner(app) {
                try await DestinationAdministration(database: $0).rotate(name, sealingWith: masterKey, by: signature)
            }
            let destination = try #require(try await app.execute(FindDestinations()).first)
            #expect(!destination.isDisabled)
            // The event that received 410 is delivered without a delay.
            let working = FakeReceiver()
            try await app.delivering(to: working) {
                try await app.wait { try await app.undelivered().isEmpty }
            }
            #expect(working.delivered.map(\.type) == ["account.created"])
            #expect(destination.secrets(at: app.clock.now, masterKey).count == 2)
            app.clock.advance(by: DestinationAdministration.rotationTime)
            #expect(destination.secrets(at: app.clock.now, masterKey).count == 1)
        }
    }

    @Test func `nodes that deliver at once keep the order of each account and deliver each event once`() async throws {
        try await TestApplication.with(connections: 4) { app in
            try await app.createDestination("billing", EventKind.standard)
            let receiver = FakeReceiver { _ in
                try? await Task.sleep(for: .milliseconds(Int.random(in: 0...4)))
                return .status(204)
            }
            try await app.delivering(to: receiver, nodes: 3) {
                try await withThrowingDiscardingTaskGroup { group in
                    for _ in 0..<6 {
                        group.addTask {
                            let ada = try await app.register()
                            for number in 0..<30 {
                                _ = try await ada.client.put(
                                    "/v1/account/receipt", ["receipt": .string("\(number)")])
                            }
                        }
                    }
                }
                try await app.wait { try await app.undelivered().isEmpty }
            }
            #expect(!receiver.isOverlapping)
            #expect(receiver.received.count == 6 * 31)
            for (_, events) in Dictionary(grouping: receiver.received, by: \.sub) {
                #expect(events.compactMap(\.number) == (1...31).map(Int64.init))
            }
        }
    }

    @Test func `accounts with many events leave others their turn`() async throws {
        try await TestApplication.with { app in
            try await app.createDestination("billing", EventKind.standard)
            let receiver = FakeReceiver()
            // As many as are delivered from at a time.
            for _ in 0..<DestinationRunner.concurrency {
                let busy = try await app.register()
                for number in 0..<30 {
                    _ = try await busy.client.put("/v1/account/receipt", ["receipt": .string("\(number)")])
                }
            }
            app.clock.advance(by: .seconds(1))
            _ = try await app.register()
            try await app.delivering(to: receiver) {
                try await app.wait { try await app.undelivered().isEmpty }
            }
            let counts = Dictionary(grouping: receiver.received, by: \.sub)
            let quiet = try #require(counts.first { $0.value.count == 1 }?.key)
            let position = try #require(receiver.received.firstIndex { $0.sub == quiet })
            #expect(position < 200, "of \(receiver.received.count)")
        }
    }
}

/// Rows of both tables.
private struct CountEventRows: Statement {
    typealias Row = Int64

    static let sql: SQL<Self> = """
        SELECT (SELECT count(*) FROM saltern.event_queues) + (SELECT count(*) FROM saltern.outgoing_events)
        """
}

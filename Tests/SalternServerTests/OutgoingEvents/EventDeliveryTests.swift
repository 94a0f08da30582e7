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
            let (id, signature) = (try #require(parked.first?.id), InviteTests.signature(app))
            let retried = try await app.asOwner {
                try await EventAdministration(database: $0).retry(EventAdministration.Selection(id: id), by: signature)
            }
            #expect(retried == 1)
            let audited = try #require(try await AccountAdministrationTests.audit(app).first)
            #expect(audited.action == "events_retried" && audited.detail == "event \(id)")
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
            try await app.asOwner {
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

    @Test func `an account for which the receiver is slow has one attempt at a time`() async throws {
        try await TestApplication.with { app in
            try await app.createDestination("billing", [.sessionOpened])
            try await app.readDestinations()
            let isMended = Mutex(false)
            let underWay = Mutex((now: 0, most: 0))
            let slow = Mutex<String?>(nil)
            let receiver = FakeReceiver { event in
                let isSlow = slow.withLock { sub in
                    if sub == nil { sub = event.sub }
                    return sub == event.sub
                }
                guard isSlow else { return .status(204) }
                underWay.withLock { $0 = ($0.now + 1, max($0.most, $0.now + 1)) }
                while !isMended.withLock({ $0 }), !Task.isCancelled { try? await Task.sleep(for: .milliseconds(5)) }
                underWay.withLock { $0.now -= 1 }
                return .status(204)
            }
            let ada = try await app.register()
            for _ in 0..<20 { _ = try await app.logIn(ada) }
            try await app.delivering(to: receiver) {
                try await app.wait { underWay.withLock { $0.now } > 0 }
                for _ in 0..<3 { _ = try await app.register() }
                try await app.wait { receiver.delivered.count == 3 }
                isMended.withLock { $0 = true }
                try await app.wait { try await app.undelivered().isEmpty }
            }
            #expect(underWay.withLock { $0.most } == 1)
            #expect(receiver.delivered.count == 24)
        }
    }

    @Test func `an open breaker tests with an account that has not failed`() async throws {
        try await TestApplication.with { app in
            try await app.createDestination("billing", [.sessionOpened])
            try await app.readDestinations()
            let rejected = Mutex(Set<String>())
            let receiver = FakeReceiver { event in
                // The first two accounts are rejected.
                let isRejected = rejected.withLock { subs in
                    if subs.count < 2 { subs.insert(event.sub) }
                    return subs.contains(event.sub)
                }
                return .status(isRejected ? 422 : 204)
            }
            let accounts = [try await app.register(), try await app.register()]
            for account in accounts {
                for _ in 1..<EventLane.queueLimit { _ = try await app.logIn(account) }
            }
            let attempts = try await app.delivering(to: receiver, breakerPause: .milliseconds(100)) {
                try await app.wait { receiver.received.count >= CircuitBreaker.threshold }
                app.clock.advance(by: .seconds(1))
                _ = try await app.register()
                let before = receiver.received.count
                try await app.wait { !receiver.delivered.isEmpty }
                return (receiver.received.firstIndex { $0.outcome == .status(204) } ?? .max) - before
            }
            // One attempt can have been under way, and one queue read.
            #expect(attempts <= 2)
        }
    }

    @Test func `accounts with many queues hide no other one`() async throws {
        try await TestApplication.with { app in
            let id = try await app.createDestination("billing", [.sessionOpened])
            func add(_ queues: Int, of account: AccountID, attempts: Int, due: String) async throws {
                try await app.administer(
                    """
                    INSERT INTO saltern.event_queues
                        (account_id, destination_id, lane, last_number, latest, due_at, attempts, ends)
                    SELECT '\(account)', '\(id)', gen_random_uuid(), 1, gen_random_uuid(),
                        '\(due)'::timestamptz + n * interval '1 second', \(attempts), true
                    FROM generate_series(1, \(queues)) n
                    """)
            }
            let (first, second, third) = (AccountID.random(), AccountID.random(), AccountID.random())
            try await add(EventLane.totalLimit, of: first, attempts: 1, due: "2025-12-30")
            try await add(EventLane.totalLimit, of: second, attempts: 0, due: "2025-12-30 12:00")
            try await add(1, of: second, attempts: 1, due: "2025-12-30 12:00")
            try await add(2, of: third, attempts: 0, due: "2025-12-31")
            let due = FindDueQueues(destinationID: id, now: app.clock.now)
            let found = try await app.execute(due).map(\.accountID)
            #expect(Array(found.prefix(7)) == [first, second, third, first, second, third, first])
            #expect(found.count == Int(FindDueQueues.limit))
            func test(except busy: AccountID...) async throws -> [AccountID] {
                try await app.execute(FindTestQueue(destinationID: id, now: app.clock.now, except: busy))
                    .map(\.accountID)
            }
            #expect(try await test() == [third])
            #expect(try await test(except: third).isEmpty)
            // A time that no delay can have set, of a clock that was ahead.
            try await app.administer("UPDATE saltern.event_queues SET due_at = '2036-01-01'")
            #expect(try await Set(app.execute(due).map(\.accountID)) == [first, second, third])
            try await app.administer("UPDATE saltern.destinations SET disabled_at = '2026-01-01'")
            #expect(try await app.execute(due).isEmpty)
        }
    }

    @Test func `an event whose age a clock has spoilt is parked after some attempts`() async throws {
        try await TestApplication.with { app in
            try await app.createDestination("billing", EventKind.standard)
            let receiver = FakeReceiver { _ in .status(500) }
            _ = try await app.register()
            try await app.administer("UPDATE saltern.outgoing_events SET waiting_since = '2036-01-01'")
            try await app.administer(
                "UPDATE saltern.event_queues SET attempts = \(RetrySchedule.attemptLimit - 2)")
            try await app.delivering(to: receiver) {
                // The failure is stored with a time before the clock advances.
                try await app.wait {
                    try await app.undelivered().first?.attempts == Int(RetrySchedule.attemptLimit) - 1
                }
                #expect(receiver.received.count == 1)
                app.clock.advance(by: RetrySchedule.longest)
                try await app.wait { try await app.undelivered().contains { $0.parkedAt != nil } }
            }
            #expect(receiver.received.count == 2)
        }
    }

    @Test func `the end of a rotation that a clock ahead has set does not count`() async throws {
        try await TestApplication.with { app in
            try await app.createDestination("billing", EventKind.standard)
            let (masterKey, name) = (app.configuration.masterKey, try #require(DestinationName("billing")))
            func rotate() async throws -> Destination {
                let signature = InviteTests.signature(app)
                try await app.asOwner {
                    try await DestinationAdministration(database: $0).rotate(
                        name, sealingWith: masterKey, by: signature)
                }
                return try #require(try await app.execute(FindDestinations()).first)
            }
            app.clock.advance(by: .seconds(10 * 365 * 86_400))
            let first = try await rotate()
            app.clock.advance(by: .seconds(-10 * 365 * 86_400))
            #expect(first.secrets(at: app.clock.now, masterKey).count == 1)
            // The current secret also signs after the next rotation.
            let current = first.secrets(at: app.clock.now, masterKey).map(\.text)
            #expect(try await rotate().secrets(at: app.clock.now, masterKey).map(\.text).suffix(1) == current[...])
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

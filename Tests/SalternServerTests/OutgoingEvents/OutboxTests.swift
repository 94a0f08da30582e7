import HTTPCore
import Postgres
import SalternTesting
import Testing

@testable import SalternServer

@Suite struct OutboxTests {
    @Test func `without a destination nothing is written`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            _ = try await ada.client.put("/v1/account/receipt", ["receipt": "x"])
            let signature = InviteTests.signature(app)
            _ = try await AccountAdministrationTests.administer(app) {
                try await $0.lock(.userid(ada.userid), by: signature)
            }
            #expect(try await app.undelivered().isEmpty)
            #expect(!app.outbox.gets(.sessionOpened) && !app.outbox.gets(.changes))
        }
    }

    @Test func `sessions that begin and explicitly end are events where a destination asks for them`() async throws {
        try await TestApplication.with { app in
            try await app.createDestination("billing", [.sessionOpened, .sessionEnded])
            try await app.readDestinations()
            let ada = try await app.register()
            let second = try await app.logIn(ada)
            let third = try await app.logIn(ada)
            #expect(try await app.undelivered().map(\.kind) == Array(repeating: "session.opened", count: 3))
            #expect(try await third.delete("/v1/sessions/current").status == 204)
            #expect(try await second.delete("/v1/sessions").status == 200)
            let signature = InviteTests.signature(app)
            _ = try await AccountAdministrationTests.administer(app) {
                try await $0.endSessions(.userid(ada.userid), by: signature)
            }
            let kinds = try await app.undelivered().map(\.kind)
            #expect(kinds.filter { $0 == "session.ended" }.count == 3)
            // A wrong key opens none.
            _ = try await app.client.post(
                "/v1/sessions", ["userid": .string(ada.userid), "passwordKey": .string(Fixtures.passwordKey("other"))])
            #expect(try await app.undelivered().filter { $0.kind == "session.opened" }.count == 3)
            let receiver = FakeReceiver()
            try await app.delivering(to: receiver) {
                try await app.wait { try await app.undelivered().isEmpty }
            }
            #expect(receiver.received.count == 6 && receiver.received.allSatisfy { $0.number == nil })
        }
    }

    @Test func `further events of sessions of an account are dropped and counted, and no others`() async throws {
        try await TestApplication.with { app in
            try await app.createDestination("billing", EventKind.allCases)
            try await app.createDestination("ends", url: nil, [.sessionEnded])
            try await app.readDestinations()
            let ada = try await app.register()
            let count = EventLane.queueLimit + 5
            for _ in 0..<count { _ = try await app.logIn(ada) }
            _ = try await app.register()
            func stored(_ kind: String) async throws -> Int {
                try await app.undelivered().filter { $0.kind == kind }.count
            }
            #expect(try await stored("session.opened") == EventLane.queueLimit + 1)
            #expect(try await ada.client.delete("/v1/sessions").status == 200)
            // Some at the other destination, which had room, and none at the first.
            #expect(try await stored("session.ended") == EventLane.queueLimit)
            #expect(try await stored("account.created") == 2)
            let receiver = FakeReceiver()
            try await app.delivering(to: receiver) {
                try await app.wait {
                    try await app.undelivered().allSatisfy { $0.destination == "ends" }
                        && app.outbox.droppedSessionEvents > 0
                }
            }
            #expect(receiver.received.count == EventLane.queueLimit + 3)
            #expect(app.outbox.droppedSessionEvents == 6 + count)
            _ = try await app.logIn(ada)
            #expect(try await stored("session.opened") == 1)
        }
    }

    @Test func `an account has a bounded number of queues, whatever it does`() async throws {
        try await TestApplication.with { app in
            try await app.createDestination("billing", url: nil)
            try await app.readDestinations()
            let ada = try await app.register()
            for number in 0..<EventLane.queueLimit + 4 {
                _ = try await app.logIn(ada)
                _ = try await ada.client.put("/v1/account/receipt", ["receipt": .string("\(number)")])
            }
            // Its changes, and the ends of more sessions than the limit.
            try await app.delivering(to: FakeReceiver()) {
                _ = try await ada.createItem()
                try await app.wait { try await app.undelivered().contains { $0.kind == "changes" } }
            }
            #expect(try await ada.client.delete("/v1/sessions").status == 200)
            #expect(try await app.execute(CountQueues()) == [Int64(EventLane.totalLimit)])
            #expect(try await app.undelivered().count == EventLane.queueLimit + EventLane.receiptLimit + 2)
        }
    }

    @Test func `behind many waiting events one receipt waits, unless it is leased`() async throws {
        try await TestApplication.with { app in
            try await app.createDestination("billing", url: nil, EventKind.standard)
            let ada = try await app.register()
            func store(_ count: Int) async throws -> Int {
                for number in 0..<count {
                    _ = try await ada.client.put("/v1/account/receipt", ["receipt": .string("\(number)")])
                }
                return try await app.undelivered().count
            }
            #expect(try await store(EventLane.receiptLimit - 1) == EventLane.receiptLimit)
            #expect(try await store(5) == EventLane.receiptLimit + 1)
            let signature = InviteTests.signature(app)
            _ = try await AccountAdministrationTests.administer(app) {
                try await $0.assign("pro", to: .userid(ada.userid), by: signature)
            }
            #expect(try await store(5) == EventLane.receiptLimit + 2)
            // A lease that covers the waiting receipt: another one must follow.
            try await app.administer(
                "UPDATE saltern.event_queues SET lease = gen_random_uuid(), leased_number = last_number")
            #expect(try await store(5) == EventLane.receiptLimit + 3)
        }
    }

    @Test func `changes of items are gathered, and at most one waits for each account`() async throws {
        try await TestApplication.with { app in
            try await app.createDestination("billing", url: nil, [.changes])
            try await app.readDestinations()
            let ada = try await app.register()
            let receiver = FakeReceiver()
            try await app.delivering(to: receiver) {
                for _ in 0..<3 {
                    app.clock.advance(by: .seconds(1))
                    let now = app.clock.now
                    _ = try await ada.createItem()
                    try await app.wait { try await app.undelivered().map(\.occurredAt) == [now] }
                }
            }
            #expect(try await app.undelivered().map(\.kind) == ["changes"])
        }
    }

    @Test func `too many changed accounts are dropped and counted`() {
        let outbox = Outbox()
        outbox.noteChange(of: .random())
        #expect(outbox.takeChanges().isEmpty && outbox.droppedChanges == 0)
        outbox.use([Self.destination])
        let account = AccountID.random()
        for _ in 0..<3 { outbox.noteChange(of: account) }
        for _ in 0..<Outbox.changeLimit { outbox.noteChange(of: .random()) }
        #expect(outbox.droppedChanges == 1)
        #expect(outbox.takeChanges().count == Outbox.changeLimit)
    }

    @Test func `a read that began before a destination was disabled does not enable it`() {
        let outbox = Outbox()
        outbox.use([Self.destination])
        let count = outbox.disabledCount
        outbox.disable(Self.destination.id, now: .distantPast)
        outbox.use([Self.destination], readAt: count)
        #expect(outbox.destinations.map(\.isDisabled) == [true] && !outbox.gets(.changes))
        outbox.use([Self.destination], readAt: outbox.disabledCount)
        #expect(outbox.gets(.changes))
    }

    private static let destination = Destination(
        id: .random(), name: DestinationName("a").unsafelyUnwrapped, audience: AudienceName("a").unsafelyUnwrapped,
        url: nil,
        kinds: [.changes], createdAt: .distantPast, disabledAt: nil, previousUntil: nil, sealedSecrets: [])

    @Test func `the purge parks events that nobody attempts, and removes parked ones`() async throws {
        try await TestApplication.with { app in
            try await app.createDestination("billing", url: nil, EventKind.standard)
            let ada = try await app.register()
            func purge() async throws -> Int? {
                let (postgres, configuration, now) = (app.postgres, app.configuration, app.clock.now)
                return try await app.run {
                    try await Purge(
                        database: postgres, sessions: configuration.sessions, policy: configuration.purge, now: now
                    ).run()?.outgoing
                }
            }
            #expect(try await purge() == 0)
            #expect(try await app.undelivered().first?.parkedAt == nil)
            app.clock.advance(by: .seconds(4 * 86_400))
            try await app.administer("UPDATE saltern.event_queues SET attempts = 3")
            #expect(try await purge() == 0)
            // The next event begins with the shortest delay.
            try await app.administer(
                "DO $$ BEGIN ASSERT (SELECT max(attempts) = 0 FROM saltern.event_queues), 'attempts'; END $$")
            #expect(try await app.undelivered().first?.parkedAt == app.clock.now)
            #expect(try await app.undelivered().first?.dueAt == nil)
            app.clock.advance(by: .seconds(3 * 86_400))
            #expect(try await purge() == 1)
            #expect(try await app.undelivered().isEmpty)
            // The next number goes on.
            _ = try await ada.client.put("/v1/account/receipt", ["receipt": "x"])
            #expect(try await app.undelivered().map(\.kind) == ["receipt.stored"])
        }
    }

    @Test func `a step of the purge that changes nothing is not repeated for ever`() async throws {
        try await TestApplication.with { app in
            try await app.createDestination("billing", url: nil, EventKind.standard)
            _ = try await app.register()
            let (postgres, sessions, now) = (app.postgres, app.configuration.sessions, app.clock.now)
            let (steps, removed) = try await app.run {
                try await postgres.withConnection { connection in
                    let purge = Purge(
                        database: postgres, sessions: sessions, policy: PurgePolicy(biteSize: 1), now: now)
                    var run = PurgeRun(purge, finding: connection, noting: { _ in })
                    var steps = 0
                    let removed = try await run.inGroups {
                        FindOverdueEvents(before: now + .seconds(1), except: $0, limit: $1)
                    } step: { _, _ in
                        steps += 1
                        if steps > 3 { throw CancellationError() }
                        return 0
                    }
                    return (steps, removed)
                }
            }
            #expect(steps == 1 && removed == 0)
        }
    }

    @Test func `events are written in the order of locks, under the lock of their account`() async throws {
        try await TestApplication.with { app in
            for sql in LockOrderGuard.script { try await app.administer(sql) }
            try await app.createDestination("billing", url: nil)
            try await app.readDestinations()
            let ada = try await app.register()
            let (second, third) = (try await app.logIn(ada), try await app.logIn(ada))
            #expect(try await third.delete("/v1/sessions/current").status == 204)
            #expect(try await second.delete("/v1/sessions/\(ada.sessionID)").status == 204)
            #expect(try await second.delete("/v1/sessions").status == 200)
            #expect(try await second.put("/v1/account/receipt", ["receipt": "x"]).status == 200)
            let (reference, signature) = (AccountReference.userid(ada.userid), InviteTests.signature(app))
            _ = try await AccountAdministrationTests.administer(app) { try await $0.lock(reference, by: signature) }
            _ = try await AccountAdministrationTests.administer(app) { try await $0.unlock(reference, by: signature) }
            _ = try await app.logIn(ada)
            _ = try await AccountAdministrationTests.administer(app) {
                try await $0.assign("pro", to: reference, by: signature)
            }
            _ = try await AccountAdministrationTests.administer(app) {
                try await $0.endSessions(reference, by: signature)
            }
            _ = try await AccountAdministrationTests.administer(app) { try await $0.delete(reference, by: signature) }
            #expect(try await app.undelivered().count == 14)
            #expect(try await app.execute(FindLockOrderFindings()) == [])
        }
    }

    @Test func `the outbox is what has happened`() async throws {
        try await TestApplication.with(connections: 2) { app in
            for seed in PropertyTests.slow {
                var scenario = Scenario(app, SeededGenerator(seed: seed))
                try await scenario.run("seed \(seed)")
            }
        }
    }

    /// Random acts on some accounts with destinations that come and go, and what has to be in the outbox afterwards.
    private struct Scenario {
        let app: TestApplication
        var random: SeededGenerator
        private var destinations: [String: Set<EventKind>] = [:]
        private var expected: [String: [String: [String]]] = [:]
        private var accounts: [TestAccount] = []
        private var locked: Set<String> = []

        init(_ app: TestApplication, _ random: SeededGenerator) {
            self.app = app
            self.random = random
        }

        private mutating func happened(_ kind: EventKind, _ account: String) {
            for (name, kinds) in destinations where kinds.contains(kind) {
                expected[name, default: [:]][account, default: []].append(kind.rawValue)
            }
        }

        private func administer(
            _ body:
                @escaping @Sendable (AccountAdministration, AuditSignature) async throws ->
                AccountAdministration.Outcome
        ) async throws -> Bool {
            let signature = InviteTests.signature(app)
            return try await AccountAdministrationTests.administer(app) { try await body($0, signature) }.isChanged
        }

        mutating func run(_ comment: Comment) async throws {
            for _ in 0..<25 {
                // In another order in the list.
                app.clock.advance(by: .milliseconds(1))
                try await act()
            }
            let found = try await app.undelivered()
            var stored: [String: [String: [String]]] = [:]
            for event in found {
                stored[event.destination, default: [:]][event.accountID.description, default: []].append(event.kind)
            }
            #expect(stored == expected, comment)
            for name in destinations.keys { try await remove(name) }
            #expect(try await app.undelivered().isEmpty, comment)
        }

        private mutating func act() async throws {
            switch Int.random(in: 0...9, using: &random) {
            case 0 where destinations.count < 3:
                let kinds = EventKind.standard.filter { _ in random.chance(0.6) }
                let name = "d\(Int.random(in: 0..<1_000_000_000, using: &random))"
                try await app.createDestination(name, url: nil, kinds)
                destinations[name] = Set(kinds)
            case 1 where random.chance(0.3):
                guard let name = destinations.keys.sorted().randomElement(using: &random) else { return }
                try await remove(name)
                destinations[name] = nil
                expected[name] = nil
            case 0...3:
                let account = try await app.register()
                accounts.append(account)
                happened(.accountCreated, account.id)
            default:
                guard let account = accounts.randomElement(using: &random) else { return }
                try await act(on: account)
            }
        }

        private mutating func act(on account: TestAccount) async throws {
            let reference = AccountReference.userid(account.userid)
            switch Int.random(in: 0...4, using: &random) {
            case 0:
                if try await administer({ try await $0.lock(reference, by: $1) }) {
                    locked.insert(account.id)
                    happened(.accountLocked, account.id)
                }
            case 1:
                if try await administer({ try await $0.unlock(reference, by: $1) }) {
                    happened(.accountUnlocked, account.id)
                }
            case 2:
                let plan = random.chance(0.5) ? "pro" : "default"
                if try await administer({ try await $0.assign(plan, to: reference, by: $1) }) {
                    happened(.planChanged, account.id)
                }
            case 3:
                // Its session ended with the first lock.
                guard !locked.contains(account.id) else { return }
                let receipt = "\(Int.random(in: 0..<1_000_000_000, using: &random))"
                let reply = try await account.client.put("/v1/account/receipt", ["receipt": .string(receipt)])
                if reply.status == 200 { happened(.receiptStored, account.id) }
            default:
                guard random.chance(0.3) else { return }
                _ = try await administer { try await $0.delete(reference, by: $1) }
                accounts.removeAll { $0.id == account.id }
                happened(.accountDeleted, account.id)
            }
        }

        private func remove(_ name: String) async throws {
            let signature = InviteTests.signature(app)
            let name = try #require(DestinationName(name))
            try await app.asOwner {
                try await DestinationAdministration(database: $0).remove(name, by: signature)
            }
        }
    }
}

private struct CountQueues: Statement {
    typealias Row = Int64

    static let sql: SQL<Self> = "SELECT count(*) FROM saltern.event_queues"
}

import HTTPCore
import Postgres
import SalternTesting
import Testing

@testable import SalternServer

@Suite struct PulledEventTests {
    /// A client with the credential of a new service.
    private func service(_ app: TestApplication, audience: String = "billing") async throws -> TestClient {
        let signature = InviteTests.signature(app)
        let name = try #require(ServiceName(audience + "-service"))
        let audience = try #require(AudienceName(audience))
        let credential = try await app.asOwner {
            try await ServiceAdministration(database: $0).create(name, for: audience, by: signature)
        }
        return app.client.with(token: credential.text)
    }

    private func lease(_ client: TestClient, limit: Int64 = 16) async throws -> TestResponse {
        try await client.post("/v1/service-events/lease", ["destination": "billing", "limit": .integer(limit)])
    }

    private func ids(_ response: TestResponse) -> [String] {
        (0..<100).compactMap { response.string("events.\($0).id") }
    }

    private func confirm(_ client: TestClient, _ ids: [String]) async throws -> TestResponse {
        try await client.post(
            "/v1/service-events/ack", ["destination": "billing", "ids": .array(ids.map { .string($0) })])
    }

    @Test func `a service leases events, confirms them, and gets the rest again`() async throws {
        try await TestApplication.with { app in
            try await app.createDestination("billing", url: nil, EventKind.standard)
            let client = try await service(app)
            #expect(try await ids(lease(client)).isEmpty)
            let ada = try await app.register()
            for number in 0..<4 {
                _ = try await ada.client.put("/v1/account/receipt", ["receipt": .string("\(number)")])
            }
            let first = try await lease(client, limit: 3)
            #expect(first.status == 200)
            #expect((0..<3).map { first.integer("events.\($0).data.number") ?? 0 } == [1, 2, 3])
            #expect(first.string("events.0.type") == "account.created")
            #expect(first.string("events.0.timestamp") == "2026-01-01T00:00:00Z")
            // Nobody else gets later events of the account meanwhile.
            #expect(try await ids(lease(client)).isEmpty)
            #expect(try await confirm(client, Array(ids(first).prefix(2))).integer("confirmed") == 2)
            #expect(try await ids(lease(client)).isEmpty)
            app.clock.advance(by: EventLease.duration)
            let second = try await lease(client)
            #expect((0..<3).map { second.integer("events.\($0).data.number") ?? 0 } == [3, 4, 5])
            #expect(ids(second).first == ids(first).last)
            #expect(try await confirm(client, ids(second)).integer("confirmed") == 3)
            #expect(try await confirm(client, ids(second)).integer("confirmed") == 0)
            #expect(try await ids(lease(client)).isEmpty)
            #expect(try await app.undelivered().isEmpty)
            _ = try await ada.client.put("/v1/account/receipt", ["receipt": "last"])
            #expect(try await lease(client).integer("events.0.data.number") == 6)
        }
    }

    @Test func `a confirmed batch makes the rest of an account's events due at once`() async throws {
        try await TestApplication.with { app in
            try await app.createDestination("billing", url: nil, EventKind.standard)
            let client = try await service(app)
            let ada = try await app.register()
            for number in 0..<9 {
                _ = try await ada.client.put("/v1/account/receipt", ["receipt": .string("\(number)")])
            }
            var numbers: [Int] = []
            while case let events = try await lease(client, limit: 4), !ids(events).isEmpty {
                numbers += ids(events).indices.compactMap { events.integer("events.\($0).data.number") }
                _ = try await confirm(client, ids(events))
            }
            #expect(numbers == Array(1...10))
        }
    }

    @Test func `events are confirmed in any order, and the last one of a lease makes later events due at once`()
        async throws
    {
        try await TestApplication.with { app in
            try await app.createDestination("billing", url: nil, EventKind.standard)
            let client = try await service(app)
            let ada = try await app.register()
            for number in 0..<4 {
                _ = try await ada.client.put("/v1/account/receipt", ["receipt": .string("\(number)")])
            }
            let first = ids(try await lease(client, limit: 3))
            #expect(try await confirm(client, [first[2]]).integer("confirmed") == 1)
            #expect(try await ids(lease(client)).isEmpty)
            #expect(try await confirm(client, [first[1], first[0]]).integer("confirmed") == 2)
            let second = try await lease(client)
            #expect((0..<2).map { second.integer("events.\($0).data.number") ?? 0 } == [4, 5])
            // Only the middle one: both others return after the lease.
            #expect(try await confirm(client, [ids(second)[1]]).integer("confirmed") == 1)
            app.clock.advance(by: EventLease.duration)
            #expect(try await ids(lease(client)) == [ids(second)[0]])
            #expect(try await confirm(client, ids(second)).integer("confirmed") == 1)
            #expect(try await app.undelivered().isEmpty)
        }
    }

    @Test func `queues whose events are parked or dropped hide no other event`() async throws {
        try await TestApplication.with { app in
            try await app.createDestination("billing", url: nil, EventKind.standard)
            let client = try await service(app)
            // More than one read finds, in lanes that end and in one that stays.
            try await app.administer(
                """
                INSERT INTO saltern.event_queues (account_id, destination_id, lane, last_number, latest, due_at, ends)
                    SELECT gen_random_uuid(), d.destination_id, CASE WHEN n = 1
                        THEN '00000000-0000-0000-0000-000000000000' ELSE gen_random_uuid() END, 1, gen_random_uuid(),
                        '2025-12-31', n > 1
                    FROM saltern.destinations d, generate_series(1, 150) n
                """)
            _ = try await app.register()
            let events = try await lease(client)
            #expect(ids(events).count == 1)
            #expect(try await app.execute(CountDueQueues()) == [1])
            _ = try await confirm(client, ids(events))
            #expect(try await app.execute(CountDueQueues()) == [0])
        }
    }

    @Test func `dropping an event makes the next one of its account due at once`() async throws {
        try await TestApplication.with { app in
            try await app.createDestination("billing", url: nil, EventKind.standard)
            let client = try await service(app)
            let ada = try await app.register()
            _ = try await ada.client.put("/v1/account/receipt", ["receipt": "x"])
            let first = try await lease(client, limit: 1)
            func drop(_ id: String) async throws {
                let (id, signature) = (EventID(id), InviteTests.signature(app))
                _ = try await app.asOwner {
                    try await EventAdministration(database: $0).drop(
                        EventAdministration.Selection(id: id), by: signature)
                }
            }
            try await drop(ids(first)[0])
            let audited = try #require(try await AccountAdministrationTests.audit(app).first)
            #expect(audited.action == "events_dropped" && audited.detail == "event \(ids(first)[0])")
            // An act on nothing is none.
            try await drop(ids(first)[0])
            #expect(try await AccountAdministrationTests.audit(app).first == audited)
            let second = try await lease(client)
            #expect(second.integer("events.0.data.number") == 2)
            try await drop(ids(second)[0])
            #expect(try await app.execute(CountDueQueues()) == [0])
        }
    }

    @Test func `a request that waits ends at once when the node stops`() async throws {
        try await TestApplication.with { app in
            try await app.createDestination("billing", url: nil, EventKind.standard)
            let client = try await service(app)
            let begun = ContinuousClock.now
            async let waiting = client.post("/v1/service-events/lease", ["destination": "billing", "wait": 20])
            try await Task.sleep(for: .milliseconds(300))
            app.outbox.endWaits()
            let reply = try await waiting
            #expect(reply.status == 200 && ids(reply).isEmpty)
            let later = try await client.post("/v1/service-events/lease", ["destination": "billing", "wait": 20])
            #expect(later.status == 200 && ids(later).isEmpty)
            #expect(ContinuousClock.now - begun < .seconds(20))
        }
    }

    @Test func `a time of a clock that was ahead holds up no event`() async throws {
        try await TestApplication.with { app in
            try await app.createDestination("billing", url: nil, EventKind.standard)
            let client = try await service(app)
            let ada = try await app.register()
            // The lease and an event are of this time.
            app.clock.advance(by: .seconds(10 * 365 * 86_400))
            #expect(try await ids(lease(client)).count == 1)
            let signature = InviteTests.signature(app)
            _ = try await AccountAdministrationTests.administer(app) {
                try await $0.assign("pro", to: .userid(ada.userid), by: signature)
            }
            app.clock.advance(by: .seconds(-10 * 365 * 86_400))
            let events = try await lease(client)
            #expect(ids(events).count == 2)
            #expect(try await ids(lease(client)).isEmpty)
            #expect(try await confirm(client, ids(events)).integer("confirmed") == 2)
            #expect(try await app.undelivered().isEmpty)
        }
    }

    @Test func `an account with many events of sessions leaves others their turn`() async throws {
        try await TestApplication.with { app in
            try await app.createDestination("billing", url: nil)
            try await app.readDestinations()
            let client = try await service(app)
            let busy = try await app.register()
            for _ in 0..<8 { _ = try await app.logIn(busy) }
            app.clock.advance(by: .seconds(1))
            _ = try await app.register()
            let events = try await lease(client, limit: 4)
            #expect(Set((0..<4).compactMap { events.string("events.\($0).data.sub") }).count == 2)
        }
    }

    @Test func `a service gets the events of its audience alone`() async throws {
        try await TestApplication.with { app in
            try await app.createDestination("billing", url: nil)
            try await app.createDestination("posted")
            let (billing, crm) = (try await service(app), try await service(app, audience: "crm"))
            _ = try await app.register()
            let events = try await lease(billing)
            #expect(ids(events).count == 1)
            #expect(try await lease(crm).status == 404)
            #expect(try await confirm(crm, ids(events)).status == 404)
            #expect(
                try await billing.post("/v1/service-events/lease", ["destination": "posted"]).status == 404)
            let ada = try await app.register()
            #expect(try await lease(ada.client).code == "service_unauthenticated")
            #expect(try await lease(app.client).status == 401)
            #expect(try await confirm(billing, ["x"]).code == "invalid_event_id")
        }
    }
}

/// Queues that a delivery would read.
private struct CountDueQueues: Statement {
    typealias Row = Int64

    static let sql: SQL<Self> = "SELECT count(*) FROM saltern.event_queues q WHERE q.due_at IS NOT NULL"
}

import HTTPCore
import SalternTesting
import Testing

@testable import SalternServer

@Suite struct PulledEventTests {
    /// A client with the credential of a new service.
    private func service(_ app: TestApplication, audience: String = "billing") async throws -> TestClient {
        let signature = InviteTests.signature(app)
        let name = try #require(ServiceName(audience + "-service"))
        let audience = try #require(AudienceName(audience))
        let credential = try await AccountAdministrationTests.asOwner(app) {
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

import HTTPCore
import Postgres
import SalternTesting
import Testing

@testable import SalternServer

@Suite struct SecurityLogTests {
    /// Kind and time of each entry, as `session_opened 00:01:00`.
    private func lines(_ reply: TestResponse) throws -> [String] {
        let events = try #require(reply.array("events"))
        return try events.indices.map { index in
            let kind = try #require(reply.string("events.\(index).kind"))
            let time = try #require(reply.string("events.\(index).occurredAt"))
            return "\(kind) \(time.dropFirst(11).prefix(8))"
        }
    }

    @Test func `sessions and failures are told, the latest first`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            app.clock.advance(by: .seconds(60))
            let phone = try await app.logIn(ada, device: "Phone")
            app.clock.advance(by: .seconds(60))
            _ = try await phone.delete("/v1/sessions/current")
            app.clock.advance(by: .seconds(60))
            let wrong: JSONValue = [
                "userid": .string(ada.userid), "passwordKey": .string(Fixtures.passwordKey("wrong")),
            ]
            for _ in 0..<2 { _ = try await app.client.post("/v1/sessions", wrong) }
            app.clock.advance(by: .seconds(60))
            _ = try await app.client.post("/v1/sessions", wrong)

            let during = try await ada.client.get("/v1/account/events")
            #expect(
                try lines(during) == ["failed_logins 00:04:00", "session_ended 00:02:00", "session_opened 00:00:00"])
            #expect(during.integer("events.0.count") == 3)
            #expect(during.string("events.0.since") == "2026-01-01T00:03:00.000Z")
            #expect(during.bool("events.0.ongoing") == true)
            #expect(during.string("events.1.device.name") == "Phone")
            #expect(during.string("events.1.since") == "2026-01-01T00:01:00.000Z")
            #expect(during.string("events.2.sessionId") == ada.sessionID)

            app.clock.advance(by: .seconds(60))
            _ = try await app.logIn(ada, device: "Laptop")
            let after = try await ada.client.get("/v1/account/events")
            #expect(
                Set(try lines(after).prefix(2)) == ["failed_logins 00:05:00", "session_opened 00:05:00"])
            #expect(try lines(after).count == 4)
            let index = try lines(after)[0].hasPrefix("failed") ? 0 : 1
            #expect(after.integer("events.\(index).count") == 3)
            #expect(after["events.\(index).ongoing"] == nil)
        }
    }

    @Test func `every way in which a session ends is told once`() async throws {
        try await TestApplication.with(tally: SessionTally(interval: 1)) { app in
            try await app.administer("UPDATE saltern.plans SET max_sessions = 3")
            let ada = try await app.register()
            app.clock.advance(by: .seconds(1))
            _ = try await app.logIn(ada, device: "ended by id")
            let sessions = try await ada.client.get("/v1/sessions")
            _ = try await ada.client.delete("/v1/sessions/\(sessions.string("sessions.1.id") ?? "")")
            app.clock.advance(by: .seconds(1))
            _ = try await app.logIn(ada, device: "ended with the others")
            _ = try await ada.client.delete("/v1/sessions")
            for name in ["trimmed", "stays 1", "stays 2", "stays 3"] {
                app.clock.advance(by: .seconds(3_600))
                _ = try await app.logIn(ada, device: name)
            }
            app.clock.advance(by: .seconds(3_600))
            let last = try await app.logIn(ada)
            let events = try await last.get("/v1/account/events")
            let ended = try #require(events.array("events")).indices
                .filter { events.string("events.\($0).kind") == "session_ended" }
                .map { events.string("events.\($0).device.name") ?? "no name" }
            // The plan's three: those that were opened last.
            #expect(ended == ["stays 1", "trimmed", "no name", "ended with the others", "ended by id"])
        }
    }

    @Test func `a session that ran out ended when it did, not when it was purged`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            app.clock.advance(by: .seconds(31 * 86_400))
            _ = try await app.run { [postgres = app.postgres, now = app.clock.now] in
                try await Purge(database: postgres, sessions: SessionPolicy(), policy: PurgePolicy(), now: now).run()
            }
            let events = try await app.logIn(ada).get("/v1/account/events")
            #expect(events.string("events.1.kind") == "session_ended")
            #expect(events.string("events.1.occurredAt") == "2026-01-31T00:00:00.000Z")
            #expect(events.string("events.1.sessionId") == ada.sessionID)
        }
    }

    @Test(arguments: [1, 3, 100]) func `pages tell everything once, in order`(_ limit: Int) async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            for number in 0..<5 {
                // Two at the same moment each time.
                app.clock.advance(by: .seconds(60))
                _ = try await app.logIn(ada, device: "a\(number)")
                _ = try await app.logIn(ada, device: "b\(number)")
                if number == 2 {
                    _ = try await app.client.post(
                        "/v1/sessions",
                        ["userid": .string(ada.userid), "passwordKey": .string(Fixtures.passwordKey("wrong"))])
                }
            }
            // Their success has moved the failure into the log; another one goes on between the sessions.
            let whole = try await ada.client.get("/v1/account/events")
            let expected = try lines(whole)
            #expect(expected.count == 12)
            #expect(expected == expected.sorted { $0.suffix(8) > $1.suffix(8) })
            var found: [String] = []
            var next: String?
            repeat {
                let page = try await ada.client.get(
                    "/v1/account/events?limit=\(limit)" + (next.map { "&page=\($0)" } ?? ""))
                #expect(try lines(page).count <= limit)
                found += try lines(page)
                next = page.string("nextPage")
            } while next != nil
            #expect(found == expected)
        }
    }

    @Test func `nobody reads another's, and a page that is none is refused`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let bob = try await app.register()
            #expect(try await bob.client.get("/v1/account/events").array("events")?.count == 1)
            let items = try #require(ItemPage(after: ItemPage.lowest)).text
            for page in ["x", "AAAA", items] {
                let reply = try await ada.client.get("/v1/account/events?page=\(page)")
                #expect(reply.status == 400 && reply.code == "invalid_parameter")
            }
            #expect(try await app.client.get("/v1/account/events").status == 401)
        }
    }

    @Test func `old events are purged, a little at a time`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            for _ in 0..<5 { _ = try await app.logIn(ada).delete("/v1/sessions/current") }
            let bob = try await app.register()
            _ = try await app.logIn(bob).delete("/v1/sessions/current")
            func purge() async throws -> Int? {
                try await app.run { [postgres = app.postgres, now = app.clock.now] in
                    try await Purge(
                        database: postgres, sessions: SessionPolicy(), policy: PurgePolicy(biteSize: 2), now: now
                    ).run()?.events
                }
            }
            app.clock.advance(by: .seconds(400 * 86_400 - 1))
            #expect(try await purge() == 0)
            app.clock.advance(by: .seconds(1))
            #expect(try await purge() == 6)
        }
    }
}

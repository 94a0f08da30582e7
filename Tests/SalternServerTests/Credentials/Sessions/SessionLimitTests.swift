import SalternTesting
import Testing

@Suite struct SessionLimitTests {
    @Test func `a login beyond the plan's limit ends the session that was used longest ago`() async throws {
        try await TestApplication.with { app in
            try await app.administer("UPDATE saltern.plans SET max_sessions = 3")
            let ada = try await app.register()
            app.clock.advance(by: .seconds(3_600))
            let phone = try await app.logIn(ada)
            app.clock.advance(by: .seconds(3_600))
            let tablet = try await app.logIn(ada)
            app.clock.advance(by: .seconds(3_600))
            // The oldest session is used again, so that the phone's is now the one.
            #expect(try await ada.client.get("/v1/account").status == 200)
            try await ada.useIsRecorded(in: app)
            let laptop = try await app.logIn(ada)

            #expect(try await phone.get("/v1/account").status == 401)
            for client in [ada.client, tablet, laptop] {
                #expect(try await client.get("/v1/account").status == 200)
            }
            #expect(try await laptop.get("/v1/account").integer("usage.sessions") == 3)
        }
    }

    @Test func `a lowered limit takes effect with the next login`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            for _ in 0..<5 { _ = try await app.logIn(ada) }
            try await app.administer("UPDATE saltern.plans SET max_sessions = 1")
            let last = try await app.logIn(ada)
            #expect(try await last.get("/v1/account").integer("usage.sessions") == 1)
            #expect(try await ada.client.get("/v1/account").status == 401)
        }
    }

    @Test func `a login removes the sessions that have ended`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            _ = try await app.logIn(ada)
            app.clock.advance(by: .seconds(31 * 86_400))
            _ = try await app.logIn(ada)
            #expect(try await app.execute(CountRows()) == [[1, 1, 1]])
        }
    }
}

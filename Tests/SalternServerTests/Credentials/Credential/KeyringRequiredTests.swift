import HTTPCore
import SalternTesting
import Testing

@testable import SalternServer

/// Whoever replaces a password key says what becomes of the keyring that was sealed under it.
@Suite struct KeyringRequiredTests {
    @Test(arguments: ["PUT /v1/account/credential", "PUT /v1/account/userid", "POST /v1/rotations/{id}/commit"])
    func `with a keyring in the account, one sealed anew and the revision of the one before are needed`(
        _ route: String
    ) async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            var rotation = RotationClient(ada)
            try await rotation.open()
            let first = Fixtures.sealed()
            _ = try await ada.client.put("/v1/account/keyring", ["keyring": .string(first)], ["If-None-Match": "*"])
            var request = NewKey(of: ada, to: "new")
            if route.contains("userid") { request = request.with(["userid": .string(Fixtures.userid())]) }
            func send(_ request: NewKey) async throws -> TestResponse {
                let path = String(route.drop { $0 != "/" }).replacing("{id}", with: rotation.id)
                let method: HTTPMethod = route.hasPrefix("PUT") ? .put : .post
                return try await ada.client.send(method, path, body: TestClient.document(request.body))
            }
            let second = Fixtures.sealed()
            for incomplete in [request, request.with(["keyring": .string(second)])] {
                let reply = try await send(incomplete)
                #expect(reply.status == 428, "\(reply)")
                #expect(reply.code == "keyring_required")
                #expect(reply.integer("revision") == 1)
            }
            #expect(try await ada.client.get("/v1/account/keyring").string("keyring") == first)
            #expect(try await app.logsIn(ada, ada.passwordKey))
            let whole = request.with(["keyring": .string(second), "keyringRevision": 1])
            let reply = try await send(whole)
            #expect(reply.status == 200, "\(reply)")
            #expect(reply.integer("keyringRevision") == 2)
            #expect(try await ada.client.get("/v1/account/keyring").string("keyring") == second)
            // And again, after a lost reply.
            #expect(try await send(whole).status == 200)
        }
    }

    @Test func `a recovery learns the revision, sets both, and may be sent again`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            _ = try await ada.client.put(
                "/v1/account/keyring", ["keyring": .string(Fixtures.sealed())], ["If-None-Match": "*"])
            _ = try await ada.setRecovery(RecoveryTests.code)
            let recovered = try await app.recover(ada, RecoveryTests.code)
            let revision = try #require(recovered.integer("keyringRevision"))
            let restricted = app.client.with(token: recovered.string("session.token"))
            let request = NewKey(of: ada, to: "new").with(["currentPasswordKey": nil])
            #expect(try await restricted.put("/v1/account/credential", request.body).code == "keyring_required")
            let keyring = Fixtures.sealed()
            let whole = request.with([
                "keyring": .string(keyring), "keyringRevision": .integer(Int64(revision)),
                "recoveryKeyring": .string(Fixtures.sealed()),
            ])
            let first = try await restricted.put("/v1/account/credential", whole.body)
            #expect(first.status == 200, "\(first)")
            for _ in 0..<2 {
                let again = try await restricted.put("/v1/account/credential", whole.body)
                #expect(again.status == 200, "\(again)")
                #expect(again.integer("keyringRevision") == first.integer("keyringRevision"))
                #expect(again.bool("currentSessionEnded") == true)
                #expect(again.string("deviceToken") == first.string("deviceToken"))
            }
            // It is the same request or nothing.
            let otherKeyring = whole.with(["keyring": .string(Fixtures.sealed())])
            #expect(try await restricted.put("/v1/account/credential", otherKeyring.body).code == "keyring_changed")
            let otherKey = whole.with(["passwordKey": .string(Fixtures.passwordKey("third"))])
            #expect(try await restricted.put("/v1/account/credential", otherKey.body).status == 401)
            #expect(try await restricted.get("/v1/account").status == 401)
            #expect(try await app.events(of: ada).count { $0 == "credential_changed" } == 1)
            // Another key was looked at, and counted.
            let login = try await app.client.post(
                "/v1/sessions",
                ["userid": .string(ada.userid), "passwordKey": .string(Fixtures.passwordKey("new"))])
            let events = try await app.client.with(token: login.string("session.token")).get("/v1/account/events")
            #expect(
                try #require(events.array("events")).contains {
                    try $0.object()["kind"]?.string() == "failed_current_keys"
                })
            app.clock.advance(by: .seconds(900))
            #expect(try await restricted.put("/v1/account/credential", whole.body).status == 401)
        }
    }

    @Test func `what a restricted session has set is answered again only while it is in force`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            _ = try await ada.setRecovery(RecoveryTests.code)
            let token = try await app.recover(ada, RecoveryTests.code).string("session.token")
            let restricted = app.client.with(token: token)
            let request = RecoveryTests.credential(Fixtures.passwordKey("new"))
            #expect(try await restricted.put("/v1/account/credential", request).status == 200)
            let login = try await app.client.post(
                "/v1/sessions",
                ["userid": .string(ada.userid), "passwordKey": .string(Fixtures.passwordKey("new"))])
            let change = NewKey(of: ada, to: "third").with(
                ["currentPasswordKey": .string(Fixtures.passwordKey("new"))])
            let owner = app.client.with(token: login.string("session.token"))
            #expect(try await owner.put("/v1/account/credential", change.body).status == 200)
            #expect(try await restricted.put("/v1/account/credential", request).status == 401)
        }
    }
}

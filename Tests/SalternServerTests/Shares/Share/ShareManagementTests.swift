import HTTPCore
import Postgres
import SalternTesting
import Testing

@testable import SalternServer

@Suite struct ShareManagementTests {
    @Test(arguments: [true, false])
    func `the manage token and the owner's session replace what a link leads to`(_ isOwner: Bool) async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let share = try await TestShare(
                ada.client, ShareFixtures.content(["maxViews": 3, "expiresAt": "2026-01-05T00:00:00Z"]))
            let manager = isOwner ? ada.client : app.client.with(token: share.manageToken)
            _ = try await app.client.get(share.path)
            app.clock.advance(by: .seconds(60))

            let content = ShareFixtures.content(format: "aes-256-gcm-iv16", ["maxViews": 2])
            let replaced = try await manager.put(share.path, content)
            #expect(replaced.status == 200)
            #expect(replaced.string("id") == share.id)
            #expect(replaced.integer("views") == 0)
            #expect(replaced.integer("maxViews") == 2)
            #expect(replaced["expiresAt"] == nil)
            #expect(replaced["manageToken"] == nil)
            #expect(replaced.string("createdAt") == "2026-01-01T00:00:00.000Z")
            #expect(replaced.string("updatedAt") == "2026-01-01T00:01:00.000Z")

            // The retry of a PUT whose reply was lost changes nothing, not even the count.
            let opened = try await app.client.get(share.path)
            #expect(opened.string("sealed") == ShareFixtures.sealed(content))
            #expect(opened.string("format") == "aes-256-gcm-iv16")
            app.clock.advance(by: .seconds(60))
            let again = try await manager.put(share.path, content)
            #expect(again.integer("views") == 1)
            #expect(again.string("updatedAt") == "2026-01-01T00:01:00.000Z")

            // What had an end has none any more, in the account's list too.
            app.clock.advance(by: .seconds(10 * 86_400))
            #expect(try await ada.client.get("/v1/account").integer("usage.shares") == 1)
            #expect(try await app.client.get(share.path).status == 200)
            #expect(try await manager.put(share.path, content).status == 404)
        }
    }

    @Test(arguments: [true, false])
    func `the manage token and the owner's session take a link back`(_ isOwner: Bool) async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let share = try await TestShare(ada.client)
            let manager = isOwner ? ada.client : app.client.with(token: share.manageToken)
            #expect(try await manager.delete(share.path).status == 204)
            #expect(try await app.client.get(share.path).status == 404)
            #expect(try await manager.delete(share.path).status == 404)
            #expect(try await manager.put(share.path, ShareFixtures.content()).status == 404)
            #expect(try await app.execute(CountShareRows()) == [[0, 0]])
            #expect(try await ada.client.get("/v1/account").integer("usage.shares") == 0)
        }
    }

    @Test func `a wrong token learns nothing of a share, and a session of somebody else does not either`() async throws
    {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let bob = try await app.register()
            let share = try await TestShare(ada.client)
            let other = try await TestShare(ada.client)
            var bodies: Set<String> = []
            for client in [
                bob.client, app.client.with(token: other.manageToken), app.client.with(token: TestShare.manageToken()),
            ] {
                for path in [share.path, "/v1/shares/\(ShareID.random().text)", "/v1/shares/x"] {
                    for reply in [
                        try await client.put(path, ShareFixtures.content()), try await client.delete(path),
                        // A body that is no share does not make a difference either.
                        try await client.put(path, client.token == bob.client.token ? ShareFixtures.content() : [:]),
                    ] {
                        #expect(reply.status == 404)
                        bodies.insert(reply.text.replacing(/"requestId":"[0-9a-f]+"/, with: ""))
                    }
                }
            }
            #expect(bodies.count == 1)
            #expect(try await app.client.get(share.path).string("sealed") == ShareFixtures.sealed(share.content))
        }
    }

    @Test func `without a well-formed live token it is 401, whatever the share`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let share = try await TestShare(ada.client)
            let ended = try await app.logIn(ada)
            #expect(try await ended.delete("/v1/sessions/current").status == 204)
            let token = TestShare.manageToken()
            for client in [
                app.client, ended, app.client.with(token: "slm_"), app.client.with(token: String(token.dropLast())),
                app.client.with(token: token + "A"), app.client.with(token: "slx" + token.dropFirst(3)),
            ] {
                for path in [share.path, "/v1/shares/\(ShareID.random().text)", "/v1/shares/x"] {
                    let replaced = try await client.put(path, ShareFixtures.content())
                    let deleted = try await client.delete(path)
                    if path.hasSuffix("/x"), client.token == ended.token {
                        #expect([replaced.status, deleted.status] == [404, 404])
                    } else {
                        #expect([replaced.status, deleted.status] == [401, 401], "\(path)")
                    }
                }
            }
            #expect(try await ended.post("/v1/shares", ShareFixtures.content()).status == 401)
            #expect(try await app.execute(CountShareRows()) == [[1, 1]])
            // A manage token opens no account.
            #expect(try await app.client.with(token: share.manageToken).get("/v1/shares").status == 401)
            #expect(try await app.client.with(token: share.manageToken).get("/v1/account").status == 401)
        }
    }

    @Test func `a locked account's links open nothing, until it is unlocked`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let bob = try await app.register()
            let other = try await TestShare(bob.client)
            let shares = [try await TestShare(ada.client), try await TestShare(ada.client)]
            let account = try #require(AccountID(pathParameter: ada.id))
            for isLocked in [true, false] {
                try await app.run {
                    try await app.postgres.withTransaction { transaction in
                        try await AccountShares.suspend(isLocked, of: account, in: transaction)
                    }
                }
                for share in shares {
                    let manager = app.client.with(token: share.manageToken)
                    let expected = isLocked ? 404 : 200
                    #expect(try await app.client.get(share.path).status == expected)
                    #expect(try await app.client.send(.head, share.path).status == expected)
                    #expect(try await manager.put(share.path, ShareFixtures.content()).status == expected)
                }
                #expect(try await app.client.get(other.path).status == 200)
            }
        }
    }

    @Test func `shares go with their account`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let bob = try await app.register()
            let other = try await TestShare(bob.client)
            let share = try await TestShare(ada.client)
            let deletion = try await ada.client.send(
                .delete, "/v1/account",
                body: TestClient.document(["currentPasswordKey": .string(ada.passwordKey)]))
            #expect(deletion.status == 204, "\(deletion)")
            #expect(try await app.client.get(share.path).status == 404)
            let manager = app.client.with(token: share.manageToken)
            #expect(try await manager.put(share.path, ShareFixtures.content()).status == 404)
            #expect(try await app.client.get(other.path).status == 200)
            #expect(try await app.execute(CountShareRows()) == [[1, 1]])
        }
    }
}

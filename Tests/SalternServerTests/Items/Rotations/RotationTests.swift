import HTTPCore
import Postgres
import SalternTesting
import Testing

@testable import SalternServer

@Suite struct RotationTests {
    @Test func `a commit swaps every item and the key at once, and other sessions end`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            for _ in 0..<7 { _ = try await ada.createItem() }
            let gone = try await ada.createItem()
            _ = try await ada.client.delete(gone, ["If-Match": "*"])
            let before = try await ada.client.bodies()
            let cursor = try #require(try await ada.client.get("/v1/changes").string("cursor"))
            let other = try await app.logIn(ada)

            var rotation = RotationClient(ada)
            let opened = try await ada.client.post(
                "/v1/rotations", ["currentPasswordKey": .string(ada.passwordKey)])
            #expect(opened.status == 201)
            #expect(opened.integer("items") == 7)
            #expect(opened.integer("revision") == 9)
            #expect(opened.string("expiresAt") == "2026-01-02T00:00:00.000Z")
            rotation.id = try #require(opened.string("id"))
            try await rotation.stageAll()
            // Nothing has changed yet.
            #expect(try await ada.client.bodies() == before)
            #expect(try await ada.client.get("/v1/changes?since=\(cursor)").array("changes")?.isEmpty == true)

            let committed = try await rotation.commit()
            #expect(committed.status == 200, "\(committed)")
            #expect(committed.integer("items") == 7)
            #expect(committed.integer("dropped") == 0)
            #expect(committed.integer("revision") == 16)
            #expect(committed.integer("sessionsEnded") == 1)

            #expect(try await ada.client.bodies() == before.mapValues(RotationClient.resealed))
            #expect(try await other.get("/v1/account").status == 401)
            #expect(try await !app.logsIn(ada, ada.passwordKey))
            #expect(try await app.logsIn(ada, rotation.newKey))
            let changes = try #require(
                try await ada.client.get("/v1/changes?since=\(cursor)").array("changes"))
            #expect(try changes.compactMap { try $0.object()["revision"]?.integer() } == Array(10...16))
            #expect(try await ada.client.get("/v1/account").integer("usage.bytes") == 7 * 32)
            // What deleted items held is sealed under the old password.
            #expect(try await ada.client.send(.post, gone + "/restore", fields: ["If-Match": "*"]).status == 410)
            #expect(try await app.stored().stagedItems == 0)
            #expect(try await app.stored().events == "rotation_committed")
        }
    }

    @Test func `a commit that is not complete names every item and changes nothing`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            var paths: [String] = []
            for _ in 0..<5 { paths.append(try await ada.createItem()) }
            var rotation = RotationClient(ada)
            try await rotation.open()
            try await rotation.stageAll()
            // One is written, one is deleted, one is deleted and made again, and there is a new one.
            #expect(try await ada.client.put(paths[0], ItemTests.item(), ["If-Match": "*"]).status == 200)
            #expect(try await ada.client.delete(paths[1], ["If-Match": "*"]).status == 200)
            #expect(try await ada.client.delete(paths[2], ["If-Match": "*"]).status == 200)
            #expect(try await ada.client.put(paths[2], ItemTests.item(), ["If-None-Match": "*"]).status == 201)
            let new = try await ada.createItem()
            let before = try await ada.client.get("/v1/changes").text

            let refused = try await rotation.commit()
            #expect(refused.status == 409)
            #expect(refused.code == "rotation_incomplete")
            #expect(try Self.paths(refused, "missing") == [new])
            #expect(try Self.paths(refused, "changed") == [paths[0], paths[2]].sorted())
            #expect(try await ada.client.get("/v1/changes").text == before)
            #expect(try await app.logsIn(ada, ada.passwordKey))

            let bodies = try await ada.client.bodies()
            let committed = try await rotation.commitWithRetries()
            #expect(committed.status == 200)
            #expect(committed.integer("items") == 5)
            #expect(committed.integer("dropped") == 1)
            #expect(try await ada.client.bodies() == bodies.mapValues(RotationClient.resealed))
            #expect(try await ada.client.get(paths[1]).status == 404)
        }
    }

    @Test func `a commit is answered again when its reply was lost, to the new key alone`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            _ = try await ada.createItem()
            var rotation = RotationClient(ada)
            try await rotation.open()
            try await rotation.stageAll()
            let first = try await rotation.commit()
            #expect(first.status == 200)
            let again = try await rotation.commit()
            #expect(again.status == 200, "\(again)")
            #expect(again.integer("items") == 1)
            #expect(again.integer("revision") == first.integer("revision"))
            #expect(again["keyringRevision"] == nil)
            #expect(try await rotation.commit(currentKey: rotation.newKey).status == 200)
            #expect(try await rotation.commit(newKey: Fixtures.passwordKey("third")).code == "wrong_credentials")
            let other = try await rotation.commit(
                currentKey: rotation.newKey, newKey: Fixtures.passwordKey("third"))
            #expect(other.code == "rotation_committed")
            #expect(
                try await rotation.stage([RotationClient.staged(Fixtures.uuid(), 1, Fixtures.sealed())]).status == 409)
            #expect(try await ada.client.delete("/v1/rotations/\(rotation.id)").code == "rotation_committed")
            #expect(try await app.stored().events == "rotation_committed")
            app.clock.advance(by: .seconds(86_401))
            #expect(try await rotation.commit().status == 404)
        }
    }

    @Test func `an account without items, and one with a keyring, can be rotated`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            var rotation = RotationClient(ada)
            try await rotation.open()
            let keyring = Fixtures.sealed()
            let reply = try await ada.client.post(
                "/v1/rotations/\(rotation.id)/commit",
                [
                    "currentPasswordKey": .string(ada.passwordKey), "passwordKey": .string(rotation.newKey),
                    "kdf": ["iterations": 700_000], "keyring": .string(keyring), "keyringRevision": 0,
                ])
            #expect(reply.status == 200, "\(reply)")
            #expect(reply.integer("items") == 0)
            #expect(reply.integer("keyringRevision") == 1)
            let login = try await app.client.post(
                "/v1/sessions", ["userid": .string(ada.userid), "passwordKey": .string(rotation.newKey)])
            #expect(login.string("keyring") == keyring)
            let kdf = try await app.client.post("/v1/kdf", ["userid": .string(ada.userid)])
            #expect(kdf.integer("iterations") == 700_000)
        }
    }

    @Test func `a refused credential leaves everything as it was`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register(iterations: 700_000)
            _ = try await ada.createItem()
            let before = try await ada.client.get("/v1/changes").text
            var rotation = RotationClient(ada)
            try await rotation.open()
            try await rotation.stageAll()
            #expect(try await rotation.commit(currentKey: rotation.newKey).code == "wrong_credentials")
            #expect(try await rotation.commit().code == "iterations_lowered")
            let stale = try await ada.client.post(
                "/v1/rotations/\(rotation.id)/commit",
                [
                    "currentPasswordKey": .string(ada.passwordKey), "passwordKey": .string(rotation.newKey),
                    "kdf": ["iterations": 700_000], "keyring": .string(Fixtures.sealed()), "keyringRevision": 3,
                ])
            #expect(stale.code == "keyring_changed")
            #expect(try await ada.client.get("/v1/changes").text == before)
            #expect(try await app.logsIn(ada, ada.passwordKey))
            #expect(try await app.stored().stagedItems == 1)
        }
    }

    @Test func `a rotation is its account's own, and one is open at a time`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            _ = try await ada.createItem()
            let eve = try await app.register()
            var first = RotationClient(ada)
            try await first.open()
            try await first.stageAll()

            var stolen = RotationClient(eve)
            stolen.id = first.id
            #expect(
                try await stolen.stage([RotationClient.staged(Fixtures.uuid(), 1, Fixtures.sealed())]).status == 404)
            #expect(try await stolen.commit().status == 404)
            #expect(try await eve.client.delete("/v1/rotations/\(first.id)").status == 404)
            #expect(
                try await ada.client.post("/v1/rotations", ["currentPasswordKey": .string(eve.passwordKey)]).code
                    == "wrong_credentials")
            #expect(try await app.stored().stagedItems == 1)

            var second = RotationClient(ada)
            try await second.open()
            #expect(try await app.stored().stagedItems == 0)
            #expect(try await first.commit().status == 404)
            #expect(try await second.commit().code == "rotation_incomplete")
            try await second.stageAll()
            #expect(try await ada.client.delete("/v1/rotations/\(second.id)").status == 204)
            #expect(try await ada.client.delete("/v1/rotations/\(second.id)").status == 404)
            #expect(try await second.commit().status == 404)
            #expect(try await app.stored().stagedItems == 0)
            #expect(try await app.stored().rotations == 0)
        }
    }

    @Test func `what an abandoned rotation has staged is purged`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            for _ in 0..<7 { _ = try await ada.createItem() }
            let bob = try await app.register()
            var rotation = RotationClient(ada)
            try await rotation.open()
            try await rotation.stageAll()
            var other = RotationClient(bob)
            try await other.open()

            app.clock.advance(by: .seconds(86_399))
            #expect(try await purge(app)?.rotations == 0)
            app.clock.advance(by: .seconds(1))
            #expect(try await rotation.commit().status == 404)
            #expect(
                try await rotation.stage([RotationClient.staged(Fixtures.uuid(), 1, Fixtures.sealed())]).status == 404)
            #expect(try await purge(app)?.rotations == 2)
            #expect(try await app.stored().stagedItems == 0)
            #expect(try await app.stored().rotations == 0)
            #expect(try await ada.client.get("/v1/account").integer("usage.items") == 7)
        }
    }

    private func purge(_ app: TestApplication) async throws -> Purge.Report? {
        try await app.run { [postgres = app.postgres, now = app.clock.now] in
            try await Purge(database: postgres, sessions: SessionPolicy(), policy: PurgePolicy(biteSize: 1), now: now)
                .run()
        }
    }

    private static func paths(_ reply: TestResponse, _ name: String) throws -> [String] {
        try #require(reply.array(name)).map { "/v1/items/\(try $0.string())" }
    }
}

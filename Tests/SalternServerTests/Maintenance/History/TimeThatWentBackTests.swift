import HTTPCore
import SalternTesting
import Testing

@testable import SalternServer

/// A backup is a copy of the database; the time after it is lost, but not what the two devices have seen of it.
@Suite struct TimeThatWentBackTests {
    /// What a device holds of an account.
    private struct Device {
        let token: String?
        let cursor: String
    }

    /// An account with one item and a keyring, as the backup has it.
    private struct Saved {
        let ada: TestAccount
        let item: String
        let phone: Device
    }

    private static func save(_ app: TestApplication) async throws -> Saved {
        let ada = try await app.register()
        let item = try await ada.createItem()
        let keyring = try await ada.client.put(
            "/v1/account/keyring", ["keyring": .string(Fixtures.sealed())], ["If-None-Match": "*"])
        #expect(keyring.fields["ETag"] == "\"1\"")
        let listing = try await ada.client.get("/v1/changes")
        #expect(listing.integer("revisionBase") == 0)
        return Saved(
            ada: ada, item: item, phone: Device(token: ada.client.token, cursor: listing.string("cursor") ?? ""))
    }

    /// What happens after the backup, and is lost: the item changes, another is made and deleted, the keyring changes.
    private static func live(
        _ app: TestApplication, _ saved: Saved
    ) async throws -> (laptop: Device, revisions: [Int], event: Int) {
        let client = app.client.with(token: saved.ada.client.token)
        var revisions: [Int] = []
        for tag in ["\"1\"", "*"] {
            let changed = try await client.put(saved.item, ItemTests.item(), ["If-Match": tag])
            revisions.append(try #require(changed.integer("revision")))
        }
        let other = "/v1/items/\(Fixtures.uuid())"
        revisions.append(
            try #require(try await client.put(other, ItemTests.item(), ["If-None-Match": "*"]).integer("revision")))
        revisions.append(try #require(try await client.delete(other, ["If-Match": "*"]).integer("revision")))
        let keyring = try await client.put(
            "/v1/account/keyring", ["keyring": .string(Fixtures.sealed())], ["If-Match": "*"])
        revisions.append(try #require(keyring.integer("revision")))
        let cursor = try #require(try await client.get("/v1/changes").string("cursor"))
        return (Device(token: client.token, cursor: cursor), revisions, revisions[3])
    }

    @Test func `old cursors have expired and old tags match nothing, also when one backup is restored twice`()
        async throws
    {
        try await TemporaryDatabase.with(migrations: Schema.migrations) { database in
            let clock = ManualClock()
            let saved = try await TestApplication.with(TestApplication.configuration, database, clock: clock) {
                try await Self.save($0)
            }
            try await database.withCopy { backup in
                let lost = try await TestApplication.with(TestApplication.configuration, database, clock: clock) {
                    try await Self.live($0, saved)
                }
                #expect(lost.revisions == [2, 3, 4, 5, 2])
                var seen = Set(lost.revisions)
                for _ in 1...2 {
                    let again = try await backup.withCopy { restored in
                        try await TestApplication.with(
                            TestApplication.configuration, restored, clock: clock, connections: 4
                        ) { app in
                            try await Self.expectNothingOld(app, saved, lost.laptop, tags: seen)
                            return try await Self.live(app, saved).revisions
                        }
                    }
                    #expect(seen.isDisjoint(with: again), "\(again)")
                    #expect(again.allSatisfy { $0 < 1 << 53 })
                    seen.formUnion(again)
                }
            }
        }
    }

    /// What two devices from before find in a database that was restored.
    private static func expectNothingOld(
        _ app: TestApplication, _ saved: Saved, _ laptop: Device, tags: Set<Int>
    ) async throws {
        let client = app.client.with(token: saved.ada.client.token)
        for cursor in [saved.phone.cursor, laptop.cursor] {
            let reply = try await client.get("/v1/changes?since=\(cursor)")
            #expect(reply.status == 410)
            #expect(reply.code == "cursor_expired")
        }
        for tag in tags {
            #expect(try await client.get(saved.item, ["If-None-Match": "\"\(tag)\""]).status == 200)
            #expect(try await client.put(saved.item, ItemTests.item(), ["If-Match": "\"\(tag)\""]).status == 412)
            #expect(try await client.delete(saved.item, ["If-Match": "\"\(tag)\""]).status == 412)
            let keyring: JSONValue = ["keyring": .string(Fixtures.sealed())]
            #expect(try await client.put("/v1/account/keyring", keyring, ["If-Match": "\"\(tag)\""]).status == 412)
        }
        // What the backup has is as it was, under the tag of then, which stands for the same bytes.
        #expect(try await client.get(saved.item, ["If-None-Match": "\"1\""]).status == 304)
        let listing = try await client.get("/v1/changes")
        #expect(listing.array("changes")?.count == 1)
        let base = try #require(listing.integer("revisionBase"))
        #expect(base > 1 << 50)
        #expect(try await client.get("/v1/account").integer("revisionBase") == base)
        let cursor = try #require(listing.string("cursor"))
        #expect(try await client.get("/v1/changes?since=\(cursor)").array("changes")?.count == 0)
        #expect(app.log.lines.filter { $0.contains("time_went_back") }.count == 1)
    }

    @Test func `every kind of change counts on above the base, and cursors follow`() async throws {
        try await TemporaryDatabase.with(migrations: Schema.migrations) { database in
            let clock = ManualClock()
            let saved = try await TestApplication.with(TestApplication.configuration, database, clock: clock) {
                try await Self.save($0)
            }
            try await database.withCopy { restored in
                try await TestApplication.with(TestApplication.configuration, restored, clock: clock) { app in
                    let client = app.client.with(token: saved.ada.client.token)
                    let first = try await client.get("/v1/changes")
                    let base = try #require(first.integer("revisionBase"))
                    let id = String(saved.item.dropFirst("/v1/items/".count))
                    let content: JSONValue = .string(Fixtures.sealed())
                    let batch = try await client.post(
                        "/v1/items/batch",
                        [
                            "operations": [
                                ["op": "put", "id": .string(id), "format": "aes-256-gcm", "body": content],
                                [
                                    "op": "put", "id": .string(Fixtures.uuid()), "format": "aes-256-gcm",
                                    "body": content,
                                ],
                            ]
                        ])
                    #expect(batch.integer("results.0.revision") == base + 1)
                    #expect(batch.integer("results.1.revision") == base + 2)
                    #expect(try await client.delete(saved.item, ["If-Match": "*"]).integer("revision") == base + 3)
                    let back = try await client.send(.post, saved.item + "/restore", fields: ["If-Match": "*"])
                    #expect(back.integer("revision") == base + 4)
                    let changes = try await client.get("/v1/changes?since=\(try #require(first.string("cursor")))")
                    #expect(changes.array("changes")?.count == 2)
                    #expect(try await client.get("/v1/account").integer("usage.items") == 2)
                    let stream = await client.stream("/v1/changes/stream", ["Last-Event-ID": "\(base)"])
                    _ = await stream.next()
                    #expect(await stream.next()?.hasPrefix("id: \(base + 4)\n") == true)
                    await stream.close()
                }
            }
        }
    }

    @Test func `a stream that comes back after a restore is told, whatever its last event was`() async throws {
        try await TemporaryDatabase.with(migrations: Schema.migrations) { database in
            let clock = ManualClock()
            let saved = try await TestApplication.with(TestApplication.configuration, database, clock: clock) {
                try await Self.save($0)
            }
            try await database.withCopy { restored in
                try await TestApplication.with(TestApplication.configuration, restored, clock: clock) { app in
                    let client = app.client.with(token: saved.ada.client.token)
                    let base = try #require(try await client.get("/v1/account").integer("revisionBase"))
                    for last in ["1", "5"] {
                        let stream = await client.stream("/v1/changes/stream", ["Last-Event-ID": last])
                        _ = await stream.next()
                        #expect(await stream.next()?.hasPrefix("id: \(base)\n") == true)
                        await stream.close()
                    }
                }
            }
        }
    }

    @Test func `a node that stays up while its database is replaced moves the base before its first write`()
        async throws
    {
        try await TestApplication.with { app in
            let saved = try await Self.save(app)
            try await app.closeDatabase()
            try await app.database.withCopy { copy in
                try await app.openDatabase()
                let path = saved.item
                try await eventually {
                    try await app.client.with(token: saved.ada.client.token).get(path).status == 200
                }
                let lost = try await Self.live(app, saved)
                try await app.closeDatabase()
                let administrator = try TestEnvironment.administratorURL()
                for (name, newName) in [
                    (app.database.name, copy.name + "_old"), (copy.name, app.database.name),
                    (copy.name + "_old", copy.name),
                ] {
                    try await app.script("ALTER DATABASE \(name) RENAME TO \(newName)", url: administrator)
                }
                let client = app.client.with(token: saved.ada.client.token)
                var written: TestResponse?
                try await eventually {
                    written = try await client.put(path, ItemTests.item(), ["If-Match": "*"])
                    return written?.status == 200
                }
                let revision = try #require(written?.integer("revision"))
                #expect(revision > 1 << 50)
                #expect(try await client.get("/v1/changes?since=\(lost.laptop.cursor)").status == 410)
            }
        }
    }
}

import Cryptography
import HTTPCore
import Postgres
import SalternTesting
import Testing

@testable import SalternServer

/// Older versions of items: which replacements keep one, and how they are read.
@Suite struct VersionTests {
    /// Each way to replace the content of an item.
    enum Way: CaseIterable {
        case put, putRevision, bytes, batch, batchRevision, batchWithDeletion, long, overLong, fullPlan
    }

    static func revisions(_ path: String, _ client: TestClient) async throws -> [Int64?] {
        let reply = try await client.get(path + "/versions")
        // A deleted item without versions.
        if reply.status == 404 { return [] }
        return try #require(reply.array("versions"), "\(reply)").map { try $0.object()["revision"]?.integer() }
    }

    @Test(arguments: Way.allCases)
    func `whichever way a content is replaced, it is kept, at most once in ten minutes`(_ way: Way) async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let first = way == .overLong ? StorageBoundTests.item(400_000) : ItemTests.item()
            let path = try await ada.createItem(first)
            if way == .fullPlan {
                // There is room for two versions, and the older ones are of another item.
                try await app.administer("UPDATE saltern.plans SET max_items = 2")
                let other = try await ada.createItem()
                for _ in 0..<3 {
                    app.clock.advance(by: ItemVersion.interval)
                    #expect(try await ada.client.put(other, ItemTests.item(), ["If-Match": "*"]).status == 200)
                }
                #expect(try await Self.revisions(other, ada.client).count == 2)
            }
            app.clock.advance(by: ItemVersion.interval)
            let before = try await ada.client.get(path)
            try await Self.replace(path, way, ada)
            #expect(try await Self.revisions(path, ada.client) == [before.integer("revision").map(Int64.init)])
            let version = try await ada.client.get(path + "/versions/\(before.integer("revision") ?? 0)")
            #expect(version.status == 200)
            #expect(version.text == before.text)
            // Its size and times, and when it goes: thirty days after the replacement.
            let list = try await ada.client.get(path + "/versions")
            #expect(list.string("versions.0.updatedAt") == before.string("updatedAt"))
            #expect(list.string("versions.0.expiresAt")?.hasPrefix("2026-01-31T") == true)

            app.clock.advance(by: ItemVersion.interval - .seconds(1))
            try await Self.replace(path, way, ada)
            #expect(try await Self.revisions(path, ada.client).count == 1)
            app.clock.advance(by: .seconds(1))
            let last = try await ada.client.get(path).integer("revision").map(Int64.init)
            try await Self.replace(path, way, ada)
            #expect(try await Self.revisions(path, ada.client).prefix(1) == [last])
            let id = try #require(AccountID(pathParameter: ada.id))
            let counters = try #require(try await app.execute(CompareCounters(accountID: id)).first)
            #expect(counters.counted == counters.actual)
            #expect(counters.actual[5] == 2)
        }
    }

    @Test(arguments: [Way.put, .putRevision, .batch, .batchWithDeletion, .long])
    func `a clock that was ahead once keeps no version from being kept`(_ way: Way) async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let path = try await ada.createItem()
            try await app.administer("UPDATE saltern.items SET kept_at = '2026-01-01 00:20:01Z'")
            try await Self.replace(path, way, ada)
            #expect(try await Self.revisions(path, ada.client) == [1])
            try await Self.replace(path, way, ada)
            #expect(try await Self.revisions(path, ada.client) == [1])
            // Clocks of nodes differ by seconds, and a request may be older than the one before it.
            app.clock.advance(by: .seconds(-30))
            try await Self.replace(path, way, ada)
            #expect(try await Self.revisions(path, ada.client) == [1])
        }
    }

    private static func replace(_ path: String, _ way: Way, _ account: TestAccount) async throws {
        let id = String(path.suffix(36))
        let revision = try await account.client.get(path).integer("revision") ?? 0
        switch way {
        case .put, .overLong, .fullPlan:
            #expect(try await account.client.put(path, ItemTests.item(), ["If-Match": "*"]).status == 200)
        case .putRevision:
            let tags = ["If-Match": "\"4711\", \"\(revision)\""]
            #expect(try await account.client.put(path, ItemTests.item(), tags).status == 200)
        case .bytes:
            let reply = try await account.client.send(
                .put, path + "/body?format=aes-256-gcm&collection=default",
                fields: ["If-Match": "*", "Content-Type": "application/octet-stream"],
                body: try Base64.decode(Fixtures.sealed().utf8))
            #expect(reply.status == 200, "\(reply)")
        case .long:
            let item = StorageBoundTests.item(300_000)
            #expect(try await account.client.put(path, item, ["If-Match": "*"]).status == 200)
        case .batch, .batchRevision, .batchWithDeletion:
            var operations = [BatchTests.put(id, way == .batchRevision ? Int64(revision) : nil)]
            if way == .batchWithDeletion {
                let other = try await account.createItem()
                operations.append(BatchTests.delete(String(other.suffix(36))))
            }
            let reply = try await account.client.post("/v1/items/batch", ["operations": .array(operations)])
            #expect(reply.status == 200, "\(reply)")
        }
    }

    @Test func `what changes nothing keeps nothing and removes nothing`() async throws {
        try await TestApplication.with { app in
            try await app.administer("UPDATE saltern.plans SET max_items = 2")
            let ada = try await app.register()
            let item = ItemTests.item()
            let path = try await ada.createItem(item)
            let other = try await ada.createItem()
            for _ in 0..<2 {
                app.clock.advance(by: ItemVersion.interval)
                #expect(try await ada.client.put(other, ItemTests.item(), ["If-Match": "*"]).status == 200)
            }
            let id = String(path.suffix(36))
            #expect(try await ada.client.put(path, item, ["If-Match": "*"]).status == 200)
            #expect(try await ada.client.put(path, item, ["If-Match": "\"9\""]).status == 200)
            #expect(try await ada.client.put(path, ItemTests.item(), ["If-Match": "\"9\""]).status == 412)
            #expect(try await ada.client.put(path, ItemTests.item(), ["If-None-Match": "*"]).status == 412)
            let long = StorageBoundTests.item(1_048_576)
            #expect(try await ada.client.put(path, long, ["If-Match": "*"]).status == 403)
            for operation in [BatchTests.put(id, 9), BatchTests.put(id, nil, item), BatchTests.put(id, nil, long)] {
                let gone = BatchTests.delete(Fixtures.uuid())
                for operations in [[operation], [operation, gone]] {
                    _ = try await ada.client.post("/v1/items/batch", ["operations": .array(operations)])
                }
            }
            #expect(try await ada.client.get(path).integer("revision") == 1)
            #expect(try await Self.revisions(path, ada.client) == [])
            #expect(try await Self.revisions(other, ada.client).count == 2)
        }
    }

    @Test func `versions are for their account, their item and their time alone`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let bob = try await app.register()
            let path = try await ada.createItem()
            #expect(try await ada.client.get(path + "/versions").text == #"{"versions":[]}"#)
            #expect(try await ada.client.put(path, ItemTests.item(), ["If-Match": "*"]).status == 200)
            let version = path + "/versions/1"
            let reply = try await ada.client.get(version)
            #expect(reply.fields["ETag"] == "\"1\"")
            #expect(try await ada.client.get(version, ["If-None-Match": "\"1\""]).status == 304)
            #expect(try await ada.client.get(version, ["If-Match": "\"2\""]).status == 412)
            // The present content is no older version.
            #expect(try await ada.client.get(path + "/versions/2").status == 404)
            for wrong in ["x", "01", "99999999999999999999"] {
                #expect(try await ada.client.get(path + "/versions/\(wrong)").status == 400, "\(wrong)")
            }
            let other = try await ada.createItem()
            #expect(try await ada.client.get(other + "/versions/1").status == 404)
            #expect(try await ada.client.get("/v1/items/\(Fixtures.uuid())/versions").status == 404)
            #expect(try await bob.client.get(path + "/versions").status == 404)
            #expect(try await bob.client.get(version).status == 404)
            #expect(try await app.client.get(version).status == 401)
            // Bob has an item of the same identifier.
            #expect(try await bob.client.put(path, ItemTests.item(), ["If-None-Match": "*"]).status == 201)
            #expect(try await bob.client.get(path + "/versions").text == #"{"versions":[]}"#)
            #expect(try await bob.client.get(version).status == 404)

            #expect(try await ada.client.delete(path, ["If-Match": "*"]).status == 200)
            #expect(try await Self.revisions(path, ada.client) == [1])
            #expect(try await ada.client.put(path, ItemTests.item(), ["If-None-Match": "*"]).status == 201)
            #expect(try await ada.client.get(version).text == reply.text)
            app.clock.advance(by: .seconds(30 * 86_400))
            let client = try await app.logIn(ada)
            #expect(try await client.get(path + "/versions").text == #"{"versions":[]}"#)
            #expect(try await client.get(version).status == 404)
        }
    }

    @Test func `a list goes back in time, page by page`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let path = try await ada.createItem()
            for _ in 0..<7 {
                app.clock.advance(by: ItemVersion.interval)
                #expect(try await ada.client.put(path, ItemTests.item(), ["If-Match": "*"]).status == 200)
            }
            var pages: [[Int64?]] = []
            var next: String? = ""
            while let page = next {
                let reply = try await ada.client.get(path + "/versions?limit=3" + page)
                pages.append(try #require(reply.array("versions")).map { try $0.object()["revision"]?.integer() })
                next = reply.string("nextPage").map { "&page=\($0)" }
                if let next {
                    let other = try await ada.createItem()
                    #expect(try await ada.client.get(other + "/versions?limit=3" + next).code == "invalid_parameter")
                }
            }
            #expect(pages.map(\.count) == [3, 3, 1])
            let revisions: [Int64?] = [7, 6, 5, 4, 3, 2, 1]
            #expect(pages.flatMap(\.self) == revisions)
            #expect(try await ada.client.get(path + "/versions?page=AAAA").status == 400)
            #expect(try await ada.client.get(path + "/versions?limit=501").status == 400)
        }
    }

    @Test func `a long version comes whole, and its title too`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let item: JSONValue = [
                "format": "aes-256-gcm", "body": .string(Fixtures.sealed(plaintext: 400_000)),
                "title": .string(Fixtures.sealed(plaintext: 200_000)), "collection": "notes", "iterations": 9_000,
            ]
            let path = try await ada.createItem(item)
            #expect(try await ada.client.put(path, ItemTests.item(), ["If-Match": "*"]).status == 200)
            let version = try await ada.client.get(path + "/versions/1")
            for member in ["body", "title", "collection", "iterations", "format"] {
                #expect(version[member] == (try item.object()[member]), "\(member)")
            }
        }
    }

    @Test func `a rotation ends the versions, and the first replacement after it keeps one`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let path = try await ada.createItem()
            #expect(try await ada.client.put(path, ItemTests.item(), ["If-Match": "*"]).status == 200)
            #expect(try await Self.revisions(path, ada.client) == [1])
            var rotation = RotationClient(ada)
            rotation.id = try #require(
                try await ada.client.post("/v1/rotations", ["currentPasswordKey": .string(ada.passwordKey)])
                    .string("id"))
            try await rotation.stageAll()
            #expect(try await rotation.commit().status == 200)
            #expect(try await Self.revisions(path, ada.client) == [])
            #expect(try await ada.client.get(path + "/versions/1").status == 404)
            #expect(try await ada.client.put(path, ItemTests.item(), ["If-Match": "*"]).status == 200)
            #expect(try await Self.revisions(path, ada.client) == [3])
            let report = try await app.run { [postgres = app.postgres, now = app.clock.now] in
                try await Purge(
                    database: postgres, sessions: SessionPolicy(), policy: PurgePolicy(), now: now
                ).run()
            }
            #expect(report == Purge.Report(versions: 1))
            #expect(try await ada.client.get("/v1/account").integer("usage.versions") == 1)
        }
    }

    @Test func `a rotation ends very many versions and contents of deleted items, in slices`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let path = try await ada.createItem()
            try await app.administer(
                """
                UPDATE saltern.plans SET max_items = 30000;
                INSERT INTO saltern.replaced_contents (account_id, item_id, revision, collection, format, body, created_at,
                    updated_at, replaced_at, expires_at)
                SELECT '\(ada.id)', CASE WHEN n > 6000 THEN gen_random_uuid() ELSE '\(path.suffix(36))' END, n, 'default',
                    'opaque', '\\x00', '2026-01-01', '2026-01-01', '2026-01-01', '2026-01-20' FROM generate_series(1, 11000) n;
                INSERT INTO saltern.deleted_contents
                    (account_id, item_id, collection, format, body, created_at, expires_at)
                SELECT '\(ada.id)', CASE n WHEN 1 THEN '00000000-0000-0000-0000-000000000000' ELSE gen_random_uuid() END,
                    'default', 'opaque', '\\x00', '2026-01-01', '2026-01-20' FROM generate_series(1, 11000) n;
                UPDATE saltern.accounts SET version_count = 11000, version_bytes = 11000, kept_count = 11000, kept_bytes = 11000
                WHERE account_id = '\(ada.id)';
                CREATE FUNCTION public.refuse_more() RETURNS trigger LANGUAGE plpgsql AS
                    'BEGIN IF (SELECT count(*) FROM changed) > 5000 THEN RAISE ''too many''; END IF; RETURN NULL; END'
                """)
            for table in ["replaced_contents", "deleted_contents"] {
                try await app.administer(
                    """
                    CREATE TRIGGER bound AFTER UPDATE ON saltern.\(table) REFERENCING NEW TABLE AS changed
                        FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_more()
                    """)
            }
            var rotation = RotationClient(ada)
            try await rotation.open()
            try await rotation.stageAll()
            #expect(try await rotation.commit().status == 200)
            for table in ["replaced_contents", "deleted_contents"] {
                try await app.administer(
                    """
                    DO $$ BEGIN
                        IF EXISTS (SELECT FROM saltern.\(table) WHERE expires_at > 'epoch') THEN RAISE 'some are left'; END IF;
                    END $$
                    """)
            }
        }
    }
}

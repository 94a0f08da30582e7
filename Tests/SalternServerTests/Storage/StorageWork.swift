import HTTPCore
import Postgres
import SalternTesting
import Testing

@testable import SalternServer

/// Somebody who does whatever comes to mind with an account.
struct StorageWork {
    let app: TestApplication
    let account: TestAccount
    /// How often each request succeeded.
    private(set) var done: [String: Int] = [:]
    /// How many userids the account has had.
    private(set) var userids = 1

    private var random: SeededGenerator
    private var client: TestClient
    private var userid: String
    private var key: String
    private let ids: [String]
    private var shares: [TestShare] = []
    private var rotation: String?
    private var keys = 0

    init(_ app: TestApplication, seed: UInt64) async throws {
        self.app = app
        account = try await app.register()
        client = account.client
        userid = account.userid
        key = account.passwordKey
        random = SeededGenerator(seed: seed)
        ids = (0..<12).map { _ in Fixtures.uuid() }
    }

    /// Does something, and says what.
    mutating func step() async throws -> String {
        let name: String
        switch Int.random(in: 0..<12, using: &random) {
        case 0...3: name = try await changeItem()
        case 4, 5: name = try await batch()
        case 6: name = try await share()
        case 7: name = try await session()
        case 8: name = try await credential()
        case 9: name = try await rotate()
        case 10: name = try await secondFactor()
        default: name = try await rest()
        }
        return name
    }

    /// Sends a request, with a session: another one when this one has ended.
    private mutating func send(
        _ name: String, _ method: HTTPMethod, _ target: String, _ body: JSONValue? = nil,
        _ fields: [String: String] = [:]
    ) async throws -> TestResponse {
        let document = body.map { TestClient.document($0) }
        var reply = try await client.send(method, target, fields: fields, body: document)
        if reply.code == "unauthenticated" {
            try await logIn()
            reply = try await client.send(method, target, fields: fields, body: document)
        }
        #expect(reply.status < 500, "\(name): \(reply) \(app.log.lines.filter { $0.contains("error\"") })")
        if reply.status < 300 { done[name, default: 0] += 1 }
        return reply
    }

    private mutating func logIn() async throws {
        app.clock.advance(by: .seconds(61))
        let reply = try await app.client.post(
            "/v1/sessions", ["userid": .string(userid), "passwordKey": .string(key)])
        done["log in", default: 0] += 1
        client = app.client.with(token: reply.string("session.token"))
    }

    private mutating func pick() -> String {
        Bool.random(using: &random) ? Fixtures.uuid() : ids.randomElement(using: &random) ?? ""
    }

    private mutating func item() -> JSONValue { StorageBoundTests.item(Int.random(in: 0...150, using: &random)) }

    private mutating func changeItem() async throws -> String {
        let path = "/v1/items/\(pick())"
        switch Int.random(in: 0..<5, using: &random) {
        case 0, 1:
            _ = try await send("create", .put, path, item(), ["If-None-Match": "*"])
            return "create"
        case 2:
            if Bool.random(using: &random) { app.clock.advance(by: ItemVersion.interval) }
            let items = try await send("list", .get, "/v1/items?fields=meta").array("items") ?? []
            let id = try items.randomElement(using: &random)?.object()["id"]?.string() ?? ids[0]
            _ = try await send("replace", .put, "/v1/items/\(id)", item(), ["If-Match": "*"])
            _ = try await send("versions", .get, "/v1/items/\(id)/versions")
            return "replace"
        case 3:
            // One that is there.
            let items = try await send("list", .get, "/v1/items?fields=meta").array("items") ?? []
            let id = try items.randomElement(using: &random)?.object()["id"]?.string() ?? ids[0]
            _ = try await send("delete", .delete, "/v1/items/\(id)", nil, ["If-Match": "*"])
            return "delete"
        default:
            _ = try await send("restore", .post, path + "/restore", nil, ["If-Match": "*"])
            return "restore"
        }
    }

    private mutating func batch() async throws -> String {
        let items = try await send("list", .get, "/v1/items?fields=meta").array("items") ?? []
        let live = try items.compactMap { try $0.object()["id"]?.string() }
        var operations: [JSONValue] = []
        let replaces = Bool.random(using: &random)
        for id in live where Int.random(in: 0..<3, using: &random) > 0 {
            operations.append(replaces ? BatchTests.put(id, nil, item()) : BatchTests.delete(id))
        }
        let others = ids.filter { !live.contains($0) }.shuffled(using: &random)
        for id in others.prefix(Int.random(in: 0...4, using: &random)) {
            operations.append(BatchTests.put(id, nil, item()))
        }
        if operations.isEmpty { operations.append(BatchTests.put(Fixtures.uuid(), 0, item())) }
        _ = try await send("batch", .post, "/v1/items/batch", ["operations": .array(operations)])
        return "batch"
    }

    private mutating func share() async throws -> String {
        var extra: [String: JSONValue] = [:]
        if Bool.random(using: &random) {
            let end = UTCTimestamp(microsecondsSinceEpoch: (app.clock.now + .seconds(30)).unixMicroseconds)
            extra["expiresAt"] = .string("\(end)")
        }
        if Bool.random(using: &random) { extra["maxViews"] = 1 }
        let content = ShareFixtures.content(plaintext: Int.random(in: 0...170, using: &random), extra)
        let known = shares.randomElement(using: &random)
        switch (Int.random(in: 0..<6, using: &random), known) {
        case (0, let known?):
            _ = try await send("replace a share", .put, known.path, content)
            return "replace a share"
        case (1, let known?):
            _ = try await app.client.get(known.path)
            return "view a share"
        case (2, let known?):
            _ = try await app.client.with(token: known.manageToken).delete(known.path)
            return "delete a share by its token"
        default:
            let reply = try await send("share", .post, "/v1/shares", content)
            if let id = reply.string("id"), let token = reply.string("manageToken") {
                shares.append(TestShare(id: id, manageToken: token, content: content))
            }
            return "share"
        }
    }

    private mutating func session() async throws -> String {
        switch Int.random(in: 0..<5, using: &random) {
        case 0, 1:
            try await logIn()
            return "log in"
        case 2:
            let sessions = try await send("sessions", .get, "/v1/sessions").array("sessions") ?? []
            let id = try sessions.randomElement(using: &random)?.object()["id"]?.string() ?? Fixtures.uuid()
            _ = try await send("end a session", .delete, "/v1/sessions/\(id)")
            return "end a session"
        case 3:
            _ = try await send("end the others", .delete, "/v1/sessions")
            return "end the others"
        default:
            _ = try await app.client.post(
                "/v1/sessions", ["userid": .string(userid), "passwordKey": .string(Fixtures.passwordKey("wrong"))])
            return "a wrong key"
        }
    }

    private mutating func credential() async throws -> String {
        keys += 1
        let newKey = Fixtures.passwordKey("key \(keys) of \(account.id)")
        var members: [(name: String, value: JSONValue)] = [
            (name: "currentPasswordKey", value: .string(key)), (name: "passwordKey", value: .string(newKey)),
            (name: "kdf", value: ["iterations": 600_000]),
        ]
        // What another device has put there is named.
        let keyring = try await send("keyring", .get, "/v1/account/keyring")
        if let revision = keyring.integer("revision"), revision > 0 {
            members.append((name: "keyring", value: .string(Fixtures.sealed())))
            members.append((name: "keyringRevision", value: .integer(Int64(revision))))
        }
        switch Int.random(in: 0..<4, using: &random) {
        case 0:
            let name = Fixtures.userid()
            members.append((name: "userid", value: .string(name)))
            let reply = try await send("userid", .put, "/v1/account/userid", .object(JSONObject(members)))
            if reply.status == 200 {
                (userid, key) = (name, newKey)
                userids += 1
            }
            return "userid"
        case 1:
            let reply = try await send("credential", .put, "/v1/account/credential", .object(JSONObject(members)))
            if reply.status == 200 { key = newKey }
            return "credential"
        case 2:
            _ = try await send(
                "set recovery", .put, "/v1/account/recovery",
                [
                    "currentPasswordKey": .string(key), "recoveryKey": .string(RecoveryTests.code),
                    "keyring": .string(Fixtures.sealed()),
                    "accountKeyringRevision": .integer(Int64(keyring.integer("revision") ?? 0)),
                ])
            return "set recovery"
        default:
            _ = try await app.client.post(
                "/v1/recoveries", ["userid": .string(userid), "recoveryKey": .string(RecoveryTests.code)])
            return "recover"
        }
    }

    private mutating func rotate() async throws -> String {
        let proof: JSONValue = ["currentPasswordKey": .string(key)]
        guard let rotation, Bool.random(using: &random) else {
            let opened = try await send("open a rotation", .post, "/v1/rotations", proof)
            guard let id = opened.string("id") else { return "open a rotation" }
            rotation = id
            let items = try await send("list", .get, "/v1/items").array("items") ?? []
            let staged = try items.map { item in
                var item = try item.object().members.filter {
                    ["id", "format"].contains($0.name.string)
                }.map { (name: $0.name.string, value: $0.value) }
                item.append((name: "ifRevision", value: .integer(Int64.random(in: 1...2, using: &random))))
                item.append((name: "body", value: .string(Fixtures.sealed(plaintext: 40))))
                return JSONValue.object(JSONObject(item))
            }
            if !staged.isEmpty {
                _ = try await send("stage", .put, "/v1/rotations/\(id)/items", ["items": .array(staged)])
            }
            return "open and stage"
        }
        if Bool.random(using: &random) {
            _ = try await send("discard a rotation", .delete, "/v1/rotations/\(rotation)")
            self.rotation = nil
            return "discard a rotation"
        }
        // Sealed anew from what is there now, so that it can be committed.
        let staging = RotationClient(account, client: client)
        var current = staging
        current.id = rotation
        try? await current.stageAll()
        keys += 1
        let newKey = Fixtures.passwordKey("key \(keys) of \(account.id)")
        var members: [(name: String, value: JSONValue)] = [
            (name: "currentPasswordKey", value: .string(key)), (name: "passwordKey", value: .string(newKey)),
            (name: "kdf", value: ["iterations": 600_000]),
        ]
        let keyring = try await send("keyring", .get, "/v1/account/keyring")
        if let revision = keyring.integer("revision"), revision > 0 {
            members.append((name: "keyring", value: .string(Fixtures.sealed())))
            members.append((name: "keyringRevision", value: .integer(Int64(revision))))
        }
        let reply = try await send(
            "commit", .post, "/v1/rotations/\(rotation)/commit", .object(JSONObject(members)))
        if reply.status == 200 { key = newKey }
        return "commit"
    }

    private mutating func secondFactor() async throws -> String {
        let proof: JSONValue = ["currentPasswordKey": .string(key)]
        let begun = try await send("begin a second factor", .post, "/v1/account/totp", proof)
        guard let secret = begun.string("secret") else { return "begin a second factor" }
        let authenticator = try Authenticator(secret: secret, clock: app.clock)
        _ = try await send(
            "confirm a second factor", .post, "/v1/account/totp/confirm", ["totp": .string(authenticator.code())])
        try await app.expectBounds(StorageBoundTests.tiny, of: account.id, "confirming")
        _ = try await send("renew codes", .post, "/v1/account/totp/recovery-codes", proof)
        try await app.expectBounds(StorageBoundTests.tiny, of: account.id, "renewing codes")
        _ = try await send("end a second factor", .delete, "/v1/account/totp", proof)
        return "a second factor"
    }

    private mutating func rest() async throws -> String {
        switch Int.random(in: 0..<6, using: &random) {
        case 0:
            let text = String(repeating: "r", count: Int.random(in: 1...65_536, using: &random))
            _ = try await send("receipt", .put, "/v1/account/receipt", ["receipt": .string(text)])
            return "receipt"
        case 1:
            let body: JSONValue = ["keyring": .string(Fixtures.sealed(plaintext: 60_000))]
            let reply = try await send("put a keyring", .put, "/v1/account/keyring", body, ["If-None-Match": "*"])
            if reply.status == 412 {
                _ = try await send("put a keyring", .put, "/v1/account/keyring", body, ["If-Match": "*"])
            }
            return "keyring"
        case 2:
            _ = try await send("export", .post, "/v1/account/export", ["currentPasswordKey": .string(key)])
            return "export"
        case 3:
            app.clock.advance(by: .seconds(Int64.random(in: 1...(9 * 86_400), using: &random)))
            return "time"
        case 4:
            let now = app.clock.now
            _ = try await app.run { [postgres = app.postgres] in
                try await Purge(
                    database: postgres, sessions: SessionPolicy(), policy: PurgePolicy(), now: now
                ).run()
            }
            done["purge", default: 0] += 1
            return "purge"
        default:
            let body: JSONValue = ["currentPasswordKey": .string(key)]
            _ = try await send("remove recovery", .delete, "/v1/account/recovery", body)
            return "remove recovery"
        }
    }
}

import Cryptography
import HTTPCore
import SalternTesting

/// A device that re-encrypts everything. What an item is sealed into anew follows from what it was, so that a test can
/// say what must be there afterwards.
struct RotationClient {
    let account: TestAccount
    let client: TestClient
    let newKey: String
    var id = ""

    init(_ account: TestAccount, client: TestClient? = nil, newKey: String = Fixtures.passwordKey("new")) {
        self.account = account
        self.client = client ?? account.client
        self.newKey = newKey
    }

    /// 32 bytes that depend on others alone.
    static func resealed(_ body: String) -> String { Fixtures.passwordKey("sealed anew " + body) }

    /// An item of 32 sealed bytes.
    static func item(_ body: String) -> JSONValue { ["format": "opaque", "body": .string(body)] }

    static func staged(_ id: String, _ revision: Int64, _ body: String) -> JSONValue {
        ["id": .string(id), "ifRevision": .integer(revision), "format": "opaque", "body": .string(body)]
    }

    mutating func open() async throws {
        let reply = try await client.post(
            "/v1/rotations", ["currentPasswordKey": .string(account.passwordKey)])
        guard reply.status == 201, let id = reply.string("id") else {
            throw UnexpectedReply(description: "opening: \(reply)")
        }
        self.id = id
    }

    func stage(_ items: [JSONValue]) async throws -> TestResponse {
        try await client.put("/v1/rotations/\(id)/items", ["items": .array(items)])
    }

    /// Stages every live item as it is now, or those of a list.
    func stageAll(only ids: Set<String>? = nil) async throws {
        var page: String?
        repeat {
            let reply = try await client.get("/v1/items?limit=500" + (page.map { "&page=\($0)" } ?? ""))
            guard let items = reply.array("items") else { throw UnexpectedReply(description: "listing: \(reply)") }
            let wanted = try items.map { try $0.object() }.filter { item in
                guard let ids, let id = try item["id"]?.string() else { return true }
                return ids.contains(id)
            }
            if !wanted.isEmpty {
                let reply = try await stage(
                    wanted.map { item in
                        Self.staged(
                            try item["id"]?.string() ?? "", try item["revision"]?.integer() ?? 0,
                            Self.resealed(try item["body"]?.string() ?? ""))
                    })
                guard reply.status == 200 else { throw UnexpectedReply(description: "staging: \(reply)") }
            }
            page = reply.string("nextPage")
        } while page != nil
    }

    func commit(currentKey: String? = nil, newKey: String? = nil) async throws -> TestResponse {
        try await client.post(
            "/v1/rotations/\(id)/commit",
            [
                "currentPasswordKey": .string(currentKey ?? account.passwordKey),
                "passwordKey": .string(newKey ?? self.newKey), "kdf": ["iterations": 600_000],
            ])
    }

    /// Commits, and stages again what stands in the way, until it is done.
    func commitWithRetries() async throws -> TestResponse {
        while true {
            let reply = try await commit()
            guard reply.status == 409 else { return reply }
            let ids = try ["missing", "changed"].flatMap { name in
                try (reply.array(name) ?? []).compactMap { try $0.string() }
            }
            try await stageAll(only: Set(ids))
        }
    }
}

/// A reply without which the test cannot go on.
struct UnexpectedReply: Error, CustomStringConvertible {
    let description: String
}

extension TestApplication {
    /// Whether the userid's key opens a session.
    func logsIn(_ account: TestAccount, _ key: String) async throws -> Bool {
        let reply = try await client.post(
            "/v1/sessions", ["userid": .string(account.userid), "passwordKey": .string(key)])
        return reply.status == 201
    }
}

extension TestClient {
    /// The body of every live item, by its id.
    func bodies() async throws -> [String: String] {
        var bodies: [String: String] = [:]
        var page: String?
        repeat {
            let reply = try await get("/v1/items?limit=500" + (page.map { "&page=\($0)" } ?? ""))
            guard let items = reply.array("items") else { throw UnexpectedReply(description: "listing: \(reply)") }
            for item in items {
                let item = try item.object()
                if let id = try item["id"]?.string() { bodies[id] = try item["body"]?.string() }
            }
            page = reply.string("nextPage")
        } while page != nil
        return bodies
    }
}

import Cryptography
import Foundation
import SalternTesting
import Testing

@testable import SalternClient

/// The server in memory answers as the real one does, for every call that it has: status, code, revisions, contents.
@Suite struct MemoryServerTests {
    @Test(arguments: PropertyTests.databases)
    func `the same calls have the same answers`(seed: UInt64) async throws {
        try await LiveServer.with { live in
            var random = SeededGenerator(seed: seed)
            for round in 0..<4 {
                let name = "ada-\(round)@example.org"
                var real = try await AnsweringServer(CurlTransport(live.address()), name)
                var memory = try await AnsweringServer(MemoryServer(), name)
                var calls = ServerCalls(random: random)
                for number in 0..<60 {
                    let call = calls.next()
                    let (expected, answer) = (try await real.answer(call), try await memory.answer(call))
                    #expect(answer == expected, "seed \(seed), account \(round), call \(number): \(call)")
                }
                random = calls.random
            }
        }
    }
}

/// One call of a random sequence.
private enum ServerCall {
    /// From the server's own last cursor, or from the beginning.
    case changes(isFirst: Bool, query: String)
    case item(ItemID)
    case batch([[String: any Sendable]])
    case logIn
}

/// Calls about few items, so that they often meet.
private struct ServerCalls {
    var random: SeededGenerator
    private let ids: [ItemID]
    private let contents: [(title: String?, body: String)]

    init(random: SeededGenerator) {
        var random = random
        ids = (0..<6).map { _ in .random(using: &random) }
        self.random = random
        // As long as the structure that the server checks wants it.
        contents = (0..<4).map { number in
            let body = Data([1] + (0..<96).map { UInt8(truncatingIfNeeded: $0 &* 37 &+ number) }).base64EncodedString()
            return (number % 2 == 0 ? nil : body, body)
        }
    }

    mutating func next() -> ServerCall {
        switch Int.random(in: 0..<12, using: &random) {
        case 0: return .logIn
        case 1: return .item(ids.randomElement(using: &random) ?? .random())
        case 2...4:
            let limit = Int.random(in: 1...5, using: &random)
            let rest = ["", "&tombstones=all", "&fields=meta", "&tombstones=all&fields=meta"]
            return .changes(
                isFirst: random.chance(oneIn: 3), query: "limit=\(limit)" + (rest.randomElement(using: &random) ?? ""))
        default:
            let named = ids.shuffled(using: &random).prefix(Int.random(in: 1...3, using: &random))
            return .batch(named.map { operation($0) })
        }
    }

    private mutating func operation(_ id: ItemID) -> [String: any Sendable] {
        var members: [String: any Sendable] = ["id": id.description]
        if !random.chance(oneIn: 4) { members["ifRevision"] = Int.random(in: 0...8, using: &random) }
        guard !random.chance(oneIn: 3), let content = contents.randomElement(using: &random) else {
            members["op"] = "delete"
            return members
        }
        members["op"] = "put"
        members["collection"] = random.chance(oneIn: 4) ? "archive" : "notes"
        members["format"] = "saltern-1"
        members["title"] = content.title
        members["body"] = content.body
        return members
    }
}

/// One account of a server, and what it answers.
private struct AnsweringServer {
    private let transport: any HTTPTransport
    private let userid: String
    private let passwordKey = Data(SecureRandom.bytes(32)).base64EncodedString()
    private static let keyring = Data((0..<64).map { UInt8(truncatingIfNeeded: $0 &* 91 &+ 151) }).base64EncodedString()
    private var token: SecureBytes?
    private var cursor: String?

    init(_ transport: any HTTPTransport, _ userid: String) async throws {
        self.transport = transport
        self.userid = userid
        for (method, path, members) in [
            (HTTPRequest.Method.get, "/v1/service", nil), (.post, "/v1/kdf", ["userid": userid]),
        ] as [(HTTPRequest.Method, String, [String: any Sendable]?)] {
            _ = try await send(method, path, members)
        }
        let (status, reply) = try await send(
            .post, "/v1/accounts",
            [
                "userid": userid, "passwordKey": passwordKey, "kdf": ["iterations": 10_000],
                "keyring": Self.keyring,
            ])
        guard status == 201 else { throw APIError.unexpectedReply }
        token = ((reply["session"] as? [String: Any])?["token"] as? String).map { SecureBytes(copying: $0.utf8) }
    }

    /// The members of the answer that do not differ from server to server, as text.
    mutating func answer(_ call: ServerCall) async throws -> String {
        let (status, reply): (Int, [String: Any])
        switch call {
        case .changes(let isFirst, let query):
            let since = isFirst ? "" : cursor.map { "&since=\($0)" } ?? ""
            (status, reply) = try await send(.get, "/v1/changes?" + query + since)
            cursor = reply["cursor"] as? String ?? cursor
        case .item(let id): (status, reply) = try await send(.get, "/v1/items/\(id)")
        case .batch(let operations):
            (status, reply) = try await send(.post, "/v1/items/batch", ["operations": operations])
        case .logIn:
            (status, reply) = try await send(
                .post, "/v1/sessions", ["userid": userid, "passwordKey": passwordKey])
        }
        let data = try JSONSerialization.data(
            withJSONObject: Self.comparable(reply), options: [.sortedKeys, .withoutEscapingSlashes])
        return "\(status) \(String(decoding: data, as: UTF8.self))"
    }

    private static let ownMembers: Set<String> = [
        "createdAt", "updatedAt", "deletedAt", "restorableUntil", "cursor", "revisionBase", "requestId", "detail",
        "session", "deviceToken", "accountId", "type", "field",
    ]

    private static func comparable(_ value: Any) -> Any {
        if let list = value as? [Any] { return list.map(comparable) }
        guard var members = value as? [String: Any] else { return value }
        // The title of a problem is words; that of an item is sealed.
        if members["code"] != nil { members["title"] = nil }
        return members.filter { !ownMembers.contains($0.key) }.mapValues(comparable)
    }

    private func send(
        _ method: HTTPRequest.Method, _ target: String, _ members: [String: any Sendable]? = nil
    ) async throws -> (Int, [String: Any]) {
        var request = HTTPRequest(method, target)
        request.token = token
        if let members {
            request.fields = [("Content-Type", "application/json")]
            request.body = SecureBytes(copying: [UInt8](try JSONSerialization.data(withJSONObject: members)))
        }
        let reply = try await transport.send(request)
        let value = try JSONSerialization.jsonObject(with: Data(reply.body)) as? [String: Any]
        return (reply.head.status, value ?? [:])
    }
}

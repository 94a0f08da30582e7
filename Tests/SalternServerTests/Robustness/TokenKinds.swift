import Cryptography
import HTTPCore
import Postgres
import SalternTesting

@testable import SalternServer

extension TokenRobustnessTests {
    /// Everything that the server takes apart before, or in place of, finding it in the database.
    static let kinds: [Kind] = tokens + places + identifiers + numbers

    private static let tokens = [
        Kind(name: "session token", byteCount: 48) { visitor, bytes in
            let client = visitor.app.client.with(token: "slt_" + Base64URL.encodeToString(bytes))
            return try await everywhere(client, visitor)
        },
        Kind(name: "the right account's session token", byteCount: 32) { visitor, bytes in
            let account = AccountID(pathParameter: visitor.account.id)?.uuid.bytes ?? []
            let client = visitor.app.client.with(token: "slt_" + Base64URL.encodeToString(account + bytes))
            return try await everywhere(client, visitor)
        },
        Kind(name: "manage token", byteCount: 32) { visitor, bytes in
            let client = visitor.app.client.with(token: "slm_" + Base64URL.encodeToString(bytes))
            return [
                try await client.put(visitor.share.path, ShareFixtures.content()),
                try await client.delete(visitor.share.path),
                try await client.delete("/v1/shares/\(ShareID.random().text)"),
            ]
        },
        Kind(name: "device token", byteCount: 48) { visitor, bytes in
            let token = JSONValue.string("sld_" + Base64URL.encodeToString(bytes))
            var replies: [TestResponse] = []
            for userid in [visitor.account.userid, Fixtures.userid()] {
                replies += [
                    try await visitor.app.client.post(
                        "/v1/sessions",
                        [
                            "userid": .string(userid), "passwordKey": .string(Fixtures.passwordKey("wrong")),
                            "device": ["token": token],
                        ]),
                    try await visitor.app.client.post(
                        "/v1/recoveries",
                        [
                            "userid": .string(userid), "recoveryKey": .string(Fixtures.passwordKey("wrong")),
                            "device": ["token": token],
                        ]),
                ]
            }
            return replies
        },
        Kind(name: "invite code", byteCount: 24) { visitor, bytes in
            [try await InviteTests.register(visitor.app, "sli_" + Base64URL.encodeToString(bytes))]
        },
        Kind(name: "key", byteCount: 32) { visitor, bytes in
            let key = JSONValue.string(Base64.encodeToString(bytes))
            let userid = JSONValue.string(visitor.account.userid)
            return [
                try await visitor.app.client.post("/v1/sessions", ["userid": userid, "passwordKey": key]),
                try await visitor.app.client.post("/v1/recoveries", ["userid": userid, "recoveryKey": key]),
                try await visitor.client.post("/v1/account/totp", ["currentPasswordKey": key]),
            ]
        },
        Kind(name: "one-time code", byteCount: 6) { visitor, bytes in
            let digits = String(bytes.map { Character(Unicode.Scalar(0x30 + $0 % 10)) })
            let letters = String(decoding: bytes.map { $0 & 0x7F }, as: UTF8.self)
            return try await [digits, letters, Hex.encode(bytes + bytes)].asyncMap { code in
                try await visitor.client.post("/v1/account/totp/confirm", ["totp": .string(code)])
            }
        },
    ]

    private static let places = [
        Kind(name: "cursor", byteCount: 16, tag: [2]) { visitor, bytes in
            [try await visitor.client.get("/v1/changes?since=" + Base64URL.encodeToString(bytes))]
        },
        Kind(name: "longer cursor", byteCount: 24, tag: [2]) { visitor, bytes in
            [try await visitor.client.get("/v1/changes?since=" + Base64URL.encodeToString(bytes))]
        },
        Kind(name: "page of items", byteCount: 17, tag: [1]) { visitor, bytes in
            try await pages(visitor, bytes) + pages(visitor, bytes + Array("notes".utf8))
                + pages(visitor, Array(bytes.prefix(17)) + [0])
        },
        Kind(name: "page of events", byteCount: 24, tag: [3]) { visitor, bytes in try await pages(visitor, bytes) },
        Kind(name: "page of shares", byteCount: 24, tag: [4]) { visitor, bytes in try await pages(visitor, bytes) },
    ]

    private static let identifiers = [
        Kind(name: "identifier of a share", byteCount: 16) { visitor, bytes in
            let bits = bytes.reduce(0 as UInt128) { $0 << 8 | UInt128($1) }
            let alphabet = Array("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
            let letters = String((bytes + bytes).prefix(22).map { alphabet[Int($0) % alphabet.count] })
            var replies: [TestResponse] = []
            for id in [String(decoding: Base62.encode(bits), as: UTF8.self), letters] {
                replies += [
                    try await visitor.app.client.get("/v1/shares/\(id)"),
                    try await visitor.app.client.send(.head, "/v1/shares/\(id)"),
                    try await visitor.app.client.get("/s/\(id)"),
                    try await visitor.client.put("/v1/shares/\(id)", ShareFixtures.content()),
                    try await visitor.client.delete("/v1/shares/\(id)"),
                ]
            }
            return replies
        },
        Kind(name: "UUID", byteCount: 16) { visitor, bytes in
            guard let id = UUID(bytes: bytes) else { return [] }
            let item = "/v1/items/\(id)"
            return [
                try await visitor.client.get(item),
                try await visitor.client.put(item, ItemTests.item(), ["If-None-Match": "*"]),
                try await visitor.client.delete(item, ["If-Match": "*"]),
                try await visitor.client.send(.post, item + "/restore", fields: ["If-Match": "*"]),
                try await visitor.client.post(
                    "/v1/items/batch",
                    ["operations": [BatchTests.put("\(id)", 0, ItemTests.item())]]),
                try await visitor.client.put(
                    "/v1/rotations/\(visitor.rotation)/items",
                    ["items": [RotationClient.staged("\(id)", 1, Fixtures.passwordKey("sealed"))]]),
                try await visitor.client.put(
                    "/v1/rotations/\(id)/items",
                    ["items": [RotationClient.staged("\(id)", 1, Fixtures.passwordKey("sealed"))]]),
                try await visitor.client.delete("/v1/rotations/\(id)"),
                try await visitor.client.delete("/v1/sessions/\(id)"),
            ]
        },
    ]

    private static let numbers = [
        Kind(name: "revision", byteCount: 8) { visitor, bytes in
            let number = bytes.reduce(0 as UInt64) { $0 << 8 | UInt64($1) }
            let tag = "\"\(number)\""
            let revision = JSONValue.integer(Int64(bitPattern: number))
            let stream = await visitor.client.stream("/v1/changes/stream", ["Last-Event-ID": "\(number)"])
            await stream.close()
            return [
                stream.response,
                try await visitor.client.get(visitor.item, ["If-None-Match": tag]),
                try await visitor.client.put(visitor.item, ItemTests.item(), ["If-Match": tag]),
                try await visitor.client.delete(visitor.item, ["If-Match": tag]),
                try await visitor.client.send(.post, visitor.item + "/restore", fields: ["If-Match": tag]),
                try await visitor.client.put(
                    "/v1/account/keyring", ["keyring": .string(Fixtures.sealed())], ["If-Match": tag]),
                try await visitor.client.post(
                    "/v1/items/batch",
                    [
                        "operations": [
                            [
                                "op": "delete", "ifRevision": revision,
                                "id": .string(String(visitor.item.dropFirst("/v1/items/".count))),
                            ]
                        ]
                    ]),
                try await visitor.client.get("/v1/changes?limit=\(number)"),
                try await visitor.client.get("/v1/items?limit=\(Int64(bitPattern: number))"),
            ]
        },
        Kind(name: "time", byteCount: 14) { visitor, bytes in
            let d = bytes.map { String($0 % 10) }
            let text =
                "\(d[0...3].joined())-\(d[4...5].joined())-\(d[6...7].joined())T"
                + "\(d[8...9].joined()):\(d[10...11].joined()):\(d[12...13].joined())Z"
            return try await [text, "9999-12-31T23:59:59.999999Z", "0000-01-01T00:00:00Z"].asyncMap { end in
                try await visitor.client.put(
                    visitor.share.path, ShareFixtures.content(["expiresAt": .string(end)]))
            }
        },
    ]

    private static func pages(_ visitor: Visitor, _ bytes: [UInt8]) async throws -> [TestResponse] {
        let page = Base64URL.encodeToString(bytes)
        return try await [
            "/v1/items", "/v1/items?collection=notes", "/v1/items?fields=meta", "/v1/account/events", "/v1/shares",
        ].asyncMap { target in
            try await visitor.client.get(target + (target.contains("?") ? "&" : "?") + "page=\(page)")
        }
    }

    /// Every kind of statement behind a session: reads, writes, transactions, streams.
    private static func everywhere(_ client: TestClient, _ visitor: Visitor) async throws -> [TestResponse] {
        let stream = await client.stream("/v1/changes/stream")
        await stream.close()
        return [
            stream.response,
            try await client.get("/v1/account"),
            try await client.put(visitor.item, ItemTests.item(), ["If-Match": "*"]),
            try await client.post(
                "/v1/items/batch", ["operations": [BatchTests.put(Fixtures.uuid(), 0, ItemTests.item())]]),
            try await client.put(
                "/v1/account/credential",
                [
                    "passwordKey": .string(Fixtures.passwordKey("new")), "kdf": ["iterations": 600_000],
                ]),
            try await client.post("/v1/shares", ShareFixtures.content()),
            try await client.put(visitor.share.path, ShareFixtures.content()),
            try await client.delete("/v1/sessions/current"),
        ]
    }
}

extension Array {
    fileprivate func asyncMap<Result>(_ body: (Element) async throws -> Result) async rethrows -> [Result] {
        var results: [Result] = []
        for element in self { results.append(try await body(element)) }
        return results
    }
}

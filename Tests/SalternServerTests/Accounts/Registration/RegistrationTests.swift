import HTTPCore
import SalternServer
import SalternTesting
import Testing

@Suite struct RegistrationTests {
    @Test func `one call creates account, credential, session and keyring`() async throws {
        try await TestApplication.with { app in
            let key = Fixtures.passwordKey("ada")
            let keyring = Fixtures.sealed()
            let registered = try await app.client.post(
                "/v1/accounts",
                [
                    "userid": "ada@example.org", "passwordKey": .string(key), "kdf": ["iterations": 700_001],
                    "keyring": .string(keyring), "device": ["name": "Ada's phone"],
                ])
            #expect(registered.status == 201)
            let token = try #require(registered.string("session.token"))
            #expect(token.hasPrefix("slt_"))
            #expect(token.utf8.count == 68)
            #expect(registered.string("session.expiresAt") == "2027-01-01T00:00:00.000Z")

            let account = try await app.client.with(token: token).get("/v1/account")
            #expect(account.status == 200)
            #expect(account.string("accountId") == registered.string("accountId"))
            #expect(account.string("userid") == "ada@example.org")
            #expect(account.string("plan") == "default")
            #expect(account.string("createdAt") == "2026-01-01T00:00:00.000Z")
            #expect(
                account["limits"] == [
                    "items": 10_000, "itemBytes": 1_048_576, "bytes": 268_435_456, "sessions": 100, "shares": 100,
                    "deletedDays": 30, "vaults": 10, "memberships": 100, "vaultMembers": 32, "vaultItems": 10_000,
                    "vaultBytes": 268_435_456,
                ])
            #expect(
                account["usage"] == [
                    "items": 0, "bytes": 0, "deletedItems": 0, "deletedBytes": 0, "versions": 0, "versionBytes": 0,
                    "sessions": 1, "shares": 0, "vaults": 0, "memberships": 0,
                ])

            let login = try await app.client.post(
                "/v1/sessions", ["userid": "ada@example.org", "passwordKey": .string(key)])
            #expect(login.status == 201)
            #expect(login.string("keyring") == keyring)
            #expect(login.integer("keyringRevision") == 1)
            #expect(login.bool("kdfUpgradeRequired") == false)
        }
    }

    @Test func `a userid is taken once, however many ask at the same time`() async throws {
        try await TestApplication.with(connections: 2) { app in
            let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
                for index in 0..<50 {
                    group.addTask {
                        try await app.client.post(
                            "/v1/accounts",
                            [
                                "userid": "ada", "passwordKey": .string(Fixtures.passwordKey("\(index)")),
                                "kdf": ["iterations": 600_000],
                            ]
                        ).status
                    }
                }
                return try await group.reduce(into: [Int: Int]()) { $0[$1, default: 0] += 1 }
            }
            #expect(statuses == [201: 1, 409: 49])
            // What the refused ones had begun is gone.
            #expect(try await app.execute(CountRows()) == [[1, 1, 1]])
        }
    }

    @Test func `a taken userid is a conflict that names its code`() async throws {
        try await TestApplication.with { app in
            _ = try await app.register("ada")
            let second = try await app.client.post("/v1/accounts", Self.body(["userid": "ada"]))
            #expect(second.status == 409)
            #expect(second.code == "userid_taken")
            #expect(second.fields["Content-Type"] == "application/problem+json")
        }
    }

    @Test func `registration that is closed is refused`() async throws {
        var configuration = TestApplication.configuration
        configuration.registration = .closed
        try await TestApplication.with(configuration) { app in
            let reply = try await app.client.post("/v1/accounts", Self.body())
            #expect(reply.status == 403)
            #expect(reply.code == "registration_closed")
            #expect(try await app.client.get("/v1/service").string("registration") == "closed")
        }
    }

    @Test func `bad input is refused with its code and field`() async throws {
        try await TestApplication.with { app in
            for bad in Self.badBodies {
                let reply = try await app.client.post("/v1/accounts", Self.body(bad.members, without: bad.removed))
                bad.check(reply)
            }
            #expect(try await app.execute(CountRows()) == [[0, 0, 0]])
        }
    }

    static let badBodies: [BadInput] = [
        BadInput(removing: "userid", 422, "missing_member", "userid"),
        BadInput(["userid": 7], 422, "wrong_type", "userid"),
        BadInput(["userid": ""], 422, "invalid_userid", "userid"),
        BadInput(["userid": "Ada"], 422, "userid_not_canonical", "userid"),
        BadInput(["userid": "a\u{0}b"], 422, "invalid_userid", "userid"),
        BadInput(["userid": .string(String(repeating: "a", count: 255))], 422, "invalid_userid", "userid"),
        BadInput(removing: "passwordKey", 422, "missing_member", "passwordKey"),
        BadInput(["passwordKey": true], 422, "wrong_type", "passwordKey"),
        BadInput(["passwordKey": "hunter2"], 422, "not_a_stretched_key", "passwordKey"),
        BadInput(removing: "kdf", 422, "missing_member", "kdf"),
        BadInput(["kdf": 600_000], 422, "wrong_type", "kdf"),
        BadInput(["kdf": [:]], 422, "missing_member", "kdf.iterations"),
        BadInput(["kdf": ["iterations": "600000"]], 422, "wrong_type", "kdf.iterations"),
        BadInput(["kdf": ["iterations": 599_999]], 422, "out_of_range", "kdf.iterations"),
        BadInput(["kdf": ["iterations": 10_000_001]], 422, "out_of_range", "kdf.iterations"),
        BadInput(["kdf": ["iterations": 600_000, "salt": "x"]], 422, "unknown_member", "kdf.salt"),
        BadInput(["keyring": "no base64!"], 422, "not_base64", "keyring"),
        BadInput(["keyring": ""], 422, "malformed_sealed_bytes", "keyring"),
        BadInput(["keyring": "cGxhaW4gdGV4dCBrZXlyaW5nLCBub3Qgc2VhbGVk"], 422, "not_encrypted", "keyring"),
        BadInput(["device": "phone"], 422, "wrong_type", "device"),
        BadInput(["device": ["name": ""]], 422, "invalid_device_name", "device.name"),
        BadInput(["device": ["name": "a\nb"]], 422, "invalid_device_name", "device.name"),
        BadInput(
            ["device": ["name": .string(String(repeating: "a", count: 65))]], 422, "invalid_device_name", "device.name"),
        BadInput(["device": ["name": "a", "kind": "b"]], 422, "unknown_member", "device.kind"),
        BadInput(["invites": "x"], 422, "unknown_member", "invites"),
        BadInput(["invite": "x"], 403, "invalid_invite", "invite"),
        BadInput(["password": "S3kr3t!", "userid": "Ada", "surplus": 1], 422, "password_refused", "password"),
        BadInput(["device": ["name": "a", "deep": [["password": "x"]]]], 422, "password_refused", "password"),
    ]

    @Test func `a keyring of 64 KiB fits and one byte more does not`() async throws {
        try await TestApplication.with { app in
            let fits = try await app.client.post(
                "/v1/accounts", Self.body(["keyring": .string(Fixtures.sealed(plaintext: 65_536 - 28))]))
            #expect(fits.status == 201, "\(fits.code ?? "")")
            let tooLong = try await app.client.post(
                "/v1/accounts", Self.body(["keyring": .string(Fixtures.sealed(plaintext: 65_537 - 28))]))
            #expect(tooLong.status == 422)
            #expect(tooLong.code == "too_long")
            #expect(tooLong.integer("limit") == 65_536)
        }
    }

    @Test func `the body's limit is that of a keyring`() async throws {
        try await TestApplication.with { app in
            let reply = try await app.client.send(
                .post, "/v1/accounts", body: [UInt8](repeating: 0x20, count: 98_305))
            #expect(reply.status == 413)
            #expect(reply.integer("limit") == 98_304)
        }
    }

    /// A registration that succeeds, with some members replaced and one removed.
    static func body(_ members: [String: JSONValue] = [:], without removed: String? = nil) -> JSONValue {
        var all: [String: JSONValue] = [
            "userid": .string(Fixtures.userid()), "passwordKey": .string(Fixtures.passwordKey("key")),
            "kdf": ["iterations": 600_000],
        ]
        all.merge(members) { $1 }
        if let removed { all[removed] = nil }
        return .object(JSONObject(all.map { (name: $0.key, value: $0.value) }))
    }
}

/// One row of a table of requests that must be refused.
struct BadInput: Sendable {
    let members: [String: JSONValue]
    let removed: String?
    let status: Int
    let code: String
    let field: String?

    init(
        _ members: [String: JSONValue] = [:], removing removed: String? = nil, _ status: Int, _ code: String,
        _ field: String?
    ) {
        self.members = members
        self.removed = removed
        self.status = status
        self.code = code
        self.field = field
    }

    /// Checks the reply to the request that this row made.
    func check(_ reply: TestResponse) {
        let row = "\(members.keys.sorted()) \(removed.map { "-\($0)" } ?? "") \(code): \(reply)"
        #expect(reply.status == status, "\(row)")
        #expect(reply.code == code, "\(row)")
        #expect(reply.string("field") == field, "\(row)")
    }
}

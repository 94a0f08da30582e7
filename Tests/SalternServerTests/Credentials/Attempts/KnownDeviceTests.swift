import Cryptography
import HTTPCore
import Postgres
import SalternTesting
import Testing

@testable import SalternServer

@Suite struct KnownDeviceTests {
    private static let wrongKey = Fixtures.passwordKey("a wrong key")

    private func attempt(
        _ app: TestApplication, _ userid: String, _ key: String, token: String? = nil
    ) async throws -> TestResponse {
        var body: [(name: String, value: JSONValue)] = [
            (name: "userid", value: .string(userid)), (name: "passwordKey", value: .string(key)),
        ]
        if let token { body.append((name: "device", value: ["token": .string(token)])) }
        return try await app.client.post("/v1/sessions", .object(JSONObject(body)))
    }

    private static func tokens(_ app: TestApplication) -> DeviceTokens {
        DeviceTokens(keys: app.configuration.masterKey.subkeys("known-device"))
    }

    private func register(_ app: TestApplication) async throws -> (userid: String, key: String, token: String) {
        let userid = Fixtures.userid()
        let key = Fixtures.passwordKey(userid)
        let reply = try await app.client.post(
            "/v1/accounts",
            ["userid": .string(userid), "passwordKey": .string(key), "kdf": ["iterations": 600_000]])
        return (userid, key, try #require(reply.string("deviceToken")))
    }

    @Test func `an attacker who never pauses does not keep a known device out for a moment`() async throws {
        try await TestApplication.with { app in
            let ada = try await register(app)
            var token = ada.token
            var refusals = 0
            for second in 0..<240 {
                // As soon as the delay is over, the attacker guesses again.
                let guess = try await attempt(app, ada.userid, Self.wrongKey)
                let wait = guess.fields["Retry-After"].flatMap { Int($0) } ?? 0
                if guess.status == 429 { refusals += 1 }
                #expect(wait <= 60)
                if second.isMultiple(of: 30) {
                    let login = try await attempt(app, ada.userid, ada.key, token: token)
                    #expect(login.status == 201, "second \(second)")
                    token = try #require(login.string("deviceToken"))
                }
                app.clock.advance(by: .seconds(1))
            }
            #expect(refusals > 200)
            // A stranger with the right key has to wait, a minute at most.
            let stranger = try await attempt(app, ada.userid, ada.key)
            #expect(stranger.status == 429)
            app.clock.advance(by: .seconds(try #require(stranger.fields["Retry-After"].flatMap { Int($0) })))
            #expect(try await attempt(app, ada.userid, ada.key).status == 201)
        }
    }

    @Test func `a device that fails has a delay of its own`() async throws {
        try await TestApplication.with { app in
            let ada = try await register(app)
            for _ in 0..<5 {
                #expect(try await attempt(app, ada.userid, Self.wrongKey, token: ada.token).status == 401)
            }
            let blocked = try await attempt(app, ada.userid, ada.key, token: ada.token)
            #expect(blocked.code == "too_many_attempts")
            #expect(blocked.fields["Retry-After"] == "1")
            // It delays nobody else, but for the one device in sixteen that has the same slot.
            let slot = Self.tokens(app).device(ada.token)?.slot
            var other: String
            repeat {
                let login = try await attempt(app, ada.userid, ada.key)
                #expect(login.status == 201)
                other = try #require(login.string("deviceToken"))
            } while Self.tokens(app).device(other)?.slot == slot
            #expect(try await attempt(app, ada.userid, ada.key, token: other).status == 201)
            app.clock.advance(by: .seconds(1))
            #expect(try await attempt(app, ada.userid, ada.key, token: ada.token).status == 201)
        }
    }

    @Test func `whatever is no token of this userid is the token of nobody, and no error`() async throws {
        try await TestApplication.with { app in
            let ada = try await register(app)
            let bob = try await register(app)
            let device = try #require(Self.tokens(app).device(ada.token))
            let foreign = DeviceTokens(keys: MasterKey.random().subkeys("known-device")).text(device)
            let future = Self.tokens(app).text(device.inGeneration(2))
            for _ in 0..<5 { _ = try await attempt(app, ada.userid, Self.wrongKey) }
            let mangled = String(ada.token.dropLast()) + (ada.token.hasSuffix("A") ? "B" : "A")
            let tokens = [
                "", "x", "sld_", bob.token, foreign, future, mangled, String(ada.token.dropLast()), ada.token + "A",
                ada.token.replacing("sld_", with: "slt_"), ada.token.uppercased(), String(repeating: "x", count: 4_000),
            ]
            let plain = try await attempt(app, ada.userid, ada.key)
            for token in tokens {
                let reply = try await attempt(app, ada.userid, ada.key, token: token)
                #expect(reply.status == 429, "\(token ?? "")")
                #expect(reply.fields["Retry-After"] == plain.fields["Retry-After"])
            }
            #expect(try await attempt(app, ada.userid, ada.key, token: ada.token).status == 201)
            // Nor is it one where there is no account.
            #expect(try await attempt(app, Fixtures.userid(), ada.key, token: ada.token).status == 401)
        }
    }

    @Test func `a device stays the same device through log-ins and through a rotation of the master key`() async throws
    {
        try await TestApplication.with { app in
            let ada = try await register(app)
            var rotated = app.configuration
            rotated.masterKey = try app.configuration.masterKey.rotated()
            try await TestApplication.with(rotated, app.database, clock: app.clock) { node in
                let login = try await attempt(node, ada.userid, ada.key, token: ada.token)
                let renewed = try #require(login.string("deviceToken"))
                #expect(renewed != ada.token)
                for _ in 0..<5 { _ = try await attempt(node, ada.userid, Self.wrongKey, token: renewed) }
                #expect(try await attempt(node, ada.userid, ada.key, token: ada.token).status == 429)
                #expect(try await attempt(node, ada.userid, ada.key).status == 201)
            }
            var pruned = app.configuration
            pruned.masterKey = rotated.masterKey.removing(Set(rotated.masterKey.ids.dropFirst()))
            try await TestApplication.with(pruned, app.database, clock: app.clock) { node in
                // Its key is gone, and with it the device.
                let login = try await attempt(node, ada.userid, ada.key, token: ada.token)
                #expect(login.status == 201)
            }
        }
    }

    @Test func `a token opens nothing, and nothing of it is stored or logged`() async throws {
        try await TestApplication.with { app in
            let ada = try await register(app)
            #expect(try await app.client.with(token: ada.token).get("/v1/account").status == 401)
            let wrong = try await attempt(app, ada.userid, Self.wrongKey, token: ada.token)
            #expect(wrong.status == 401)
            #expect(!wrong.text.contains(ada.token))
            #expect(!app.log.lines.contains { $0.contains(ada.token) || $0.contains(ada.token.dropFirst(4)) })
        }
    }

    @Test func `a token is a version, an account, a slot, a generation and their code`() throws {
        let keys = MasterKey.random().subkeys("known-device")
        let tokens = DeviceTokens(keys: keys)
        let device = KnownDevice(accountID: .random(), slot: 15, generation: 0x0102_0304_0506_0708)
        let token = try #require(tokens.text(device))
        let bytes = try Base64URL.decode(token.dropFirst(4).utf8.map { $0 })
        let name = [1] + device.accountID.uuid.bytes + [15, 1, 2, 3, 4, 5, 6, 7, 8]
        #expect(bytes == name + keys[0].authenticationCode(for: name).bytes)
        #expect(tokens.device(token) == device)
        // Another version, and a slot that there is not, although the code is right.
        for (index, byte) in [(0, 2), (17, 16)] as [(Int, UInt8)] {
            var other = name
            other[index] = byte
            let text = "sld_" + Base64URL.encodeToString(other + keys[0].authenticationCode(for: other).bytes)
            #expect(tokens.device(text) == nil)
        }
    }

    @Test func `a right log-in with a token keeps its slot, one without gets any of sixteen`() async throws {
        try await TestApplication.with { app in
            let ada = try await register(app)
            let device = try #require(Self.tokens(app).device(ada.token))
            for _ in 0..<5 {
                let login = try await attempt(app, ada.userid, ada.key, token: ada.token)
                let renewed = try #require(login.string("deviceToken"))
                #expect(Self.tokens(app).device(renewed) == device)
            }
            var slots: Set<UInt8> = []
            // So many that chance leaves none out.
            for _ in 0..<1_000 where slots.count < 16 {
                let login = try await attempt(app, ada.userid, ada.key)
                let renewed = try #require(login.string("deviceToken"))
                let device = try #require(Self.tokens(app).device(renewed))
                #expect(device.generation == 1 && device.slot < 16)
                slots.insert(device.slot)
            }
            #expect(slots.count == 16)
        }
    }

    @Test func `members of a device that nobody knows are refused, one of the wrong type too`() async throws {
        try await TestApplication.with { app in
            let ada = try await register(app)
            for (device, code) in [
                (["token": 1], "wrong_type"), (["key": "x"], "unknown_member"), (["name": ""], "invalid_device_name"),
            ] as [(JSONValue, String)] {
                let reply = try await app.client.post(
                    "/v1/sessions",
                    ["userid": .string(ada.userid), "passwordKey": .string(ada.key), "device": device])
                #expect(reply.status == 422 && reply.code == code)
            }
        }
    }
}

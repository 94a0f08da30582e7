import HTTPCore
import Postgres
import SalternTesting
import Testing

@testable import SalternServer

@Suite struct KDFParametersTests {
    @Test func `a known userid gets its own parameters`() async throws {
        try await TestApplication.with { app in
            _ = try await app.register("ada@example.org", iterations: 712_345)
            let reply = try await app.client.post("/v1/kdf", ["userid": "ada@example.org"])
            #expect(reply.status == 200)
            #expect(
                reply[""] == [
                    "algorithm": "PBKDF2-HMAC-SHA256", "saltPrefix": "com.example.test:",
                    "salt": "com.example.test:ada@example.org", "iterations": 712_345, "keyLength": 32,
                ])
        }
    }

    @Test func `an unknown userid gets the same kind of answer, always the same`() async throws {
        try await TestApplication.with { app in
            _ = try await app.register("known", iterations: 800_000)
            let known = try await app.client.post("/v1/kdf", ["userid": "known"])
            let unknown = try await app.client.post("/v1/kdf", ["userid": "nobody"])
            #expect(unknown.status == known.status)
            #expect(unknown.names == known.names)
            #expect(unknown.fields.map(\.name) == known.fields.map(\.name))
            #expect(unknown.string("salt") == "com.example.test:nobody")
            #expect(try await app.client.post("/v1/kdf", ["userid": "nobody"])[""] == unknown[""])
        }
    }

    @Test func `decoys have the iteration counts of real accounts in their proportions`() async throws {
        try await TestApplication.with { app in
            // Before anybody has registered, everybody would have the default.
            #expect(try await app.client.post("/v1/kdf", ["userid": "nobody"]).integer("iterations") == 600_000)
            try await app.administer(
                """
                INSERT INTO saltern.logins (userid, account_id, verifier, kdf_iterations)
                SELECT 'real' || n, gen_random_uuid(), sha256('x'),
                    CASE WHEN n <= 60 THEN 600000 WHEN n <= 90 THEN 710000 ELSE 1234567 END
                FROM generate_series(1, 100) n
                """)
            #expect(try await app.redraw() == true)

            var found: [Int: Int] = [:]
            for number in 0..<2_000 {
                let reply = try await app.client.post("/v1/kdf", ["userid": .string("nobody\(number)")])
                found[try #require(reply.integer("iterations")), default: 0] += 1
            }
            // 2,000 draws from the 256 slots: five standard deviations are below 110.
            #expect(Set(found.keys) == [600_000, 710_000, 1_234_567])
            #expect(abs((found[600_000] ?? 0) - 1_200) < 125)
            #expect(abs((found[710_000] ?? 0) - 600) < 125)
            #expect(abs((found[1_234_567] ?? 0) - 200) < 90)
        }
    }

    @Test func `decoys are drawn at most once a day, and every node shows the same`() async throws {
        try await TestApplication.with { app in
            // There is nothing to draw from yet.
            #expect(try await app.redraw() == false)
            _ = try await app.register()
            #expect(try await app.redraw() == true)
            #expect(try await app.redraw() == false)
            app.clock.advance(by: .seconds(86_399))
            #expect(try await app.redraw() == false)
            app.clock.advance(by: .seconds(1))
            try await app.administer(
                """
                INSERT INTO saltern.logins (userid, account_id, verifier, kdf_iterations)
                SELECT 'real' || n, gen_random_uuid(), sha256('x'), 600000 + n FROM generate_series(1, 300) n
                """)
            #expect(try await app.redraw() == true)

            try await TestApplication.with(app.configuration, app.database, clock: app.clock) { node in
                for number in 0..<20 {
                    let body: JSONValue = ["userid": .string("nobody\(number)")]
                    let here = try await app.client.post("/v1/kdf", body)
                    #expect(try await node.client.post("/v1/kdf", body)[""] == here[""])
                }
            }
        }
    }

    @Test func `decoys that are not due ask nothing of the accounts`() async throws {
        try await TestApplication.with { app in
            _ = try await app.register()
            #expect(try await app.redraw() == true)
            try await app.administer("ALTER TABLE saltern.logins RENAME TO logins_away")
            #expect(try await app.redraw() == false)
            app.clock.advance(by: .seconds(86_400))
            await #expect(throws: PostgresError.self) { try await app.redraw() }
            try await app.administer("ALTER TABLE saltern.logins_away RENAME TO logins")
            #expect(try await app.redraw() == true)
        }
    }

    @Test func `of many accounts a part is asked, from everywhere`() async throws {
        try await TestApplication.with { app in
            try await app.administer(
                """
                INSERT INTO saltern.logins (userid, account_id, verifier, kdf_iterations)
                SELECT 'real' || n, gen_random_uuid(), sha256('x'), 600000 + n FROM generate_series(1, 250000) n
                """)
            let postgres = app.postgres
            let sample = try #require(try await app.run { try await DecoyParameters.sample(postgres) })
            #expect((DecoyParameters.sampleSize..<200_000).contains(sample.count))
            let quantiles = try #require(sample.quantiles)
            #expect(quantiles == quantiles.sorted() && quantiles.count == DecoyParameters.slotCount)
            for (slot, iterations) in quantiles.enumerated() {
                #expect(abs(Int(iterations) - 600_000 - 250_000 * (2 * slot + 1) / 512) < 25_000)
            }
        }
    }

    @Test func `bad input is refused with its code and field`() async throws {
        try await TestApplication.with { app in
            let rows = [
                BadInput([:], 422, "missing_member", "userid"),
                BadInput(["userid": .null], 422, "wrong_type", "userid"),
                BadInput(["userid": "ADA"], 422, "userid_not_canonical", "userid"),
                BadInput(["userid": "ada", "x": 1], 422, "unknown_member", "x"),
                BadInput(["userid": "ada", "password": "x"], 422, "password_refused", "password"),
            ]
            for bad in rows {
                let body = JSONValue.object(JSONObject(bad.members.map { (name: $0.key, value: $0.value) }))
                bad.check(try await app.client.post("/v1/kdf", body))
            }
            #expect(try await app.client.post("/v1/kdf", ["userid": "ADA"]).string("canonical") == "ada")
            #expect(try await app.client.post("/v1/kdf", ["a"]).code == "wrong_type")
        }
    }

    @Test func `nodes that start at once on a new database agree`() async throws {
        try await TestApplication.with(connections: 2) { app in
            try await app.administer("DELETE FROM saltern.installation")
            let configuration = app.configuration
            let postgres = app.postgres
            let clock = app.clock
            let slots = try await withThrowingTaskGroup(of: Int32.self) { group in
                for _ in 0..<8 {
                    group.addTask {
                        let installation = try await app.run {
                            try await Installation.load(configuration: configuration, database: postgres, clock: clock)
                        }
                        return try installation.decoys.slot(for: Userid("nobody"))
                    }
                }
                return try await group.reduce(into: Set<Int32>()) { $0.insert($1) }
            }
            #expect(slots.count == 1)
        }
    }

    @Test func `another salt prefix is refused for a database that has one`() async throws {
        try await TestApplication.with { app in
            var other = app.configuration
            other.saltPrefix = "org.example.other:"
            await #expect(throws: InstallationError.saltPrefixDiffers) {
                try await TestApplication.with(other, app.database, clock: app.clock) { _ in }
            }
        }
    }

    @Test func `an unseen character in the salt prefix is refused, unless the database has it`() async throws {
        let names: [(String, String)] = [
            ("\u{200B}", "U+200B (ZERO WIDTH SPACE) as character 12"),
            ("\u{FEFF}", "U+FEFF (ZERO WIDTH NO-BREAK SPACE) as character 12"), ("\u{AD}", "U+00AD (SOFT HYPHEN)"),
            ("\u{A0}", "U+00A0 (NO-BREAK SPACE)"), ("\u{202E}", "U+202E (RIGHT-TO-LEFT OVERRIDE)"),
            ("\u{3164}", "U+3164 (HANGUL FILLER)"), ("\u{E0041}", "U+E0041 (TAG LATIN CAPITAL LETTER A)"),
            ("\u{2800}", "U+2800 (BRAILLE PATTERN BLANK)"), ("\u{85}", "U+0085"),
        ]
        for (character, name) in names {
            let found = InvisibleCharacter(in: "org.example\(character):")
            #expect(found?.description.contains(name) == true, "\(String(describing: found))")
        }
        for prefix in ["org.example.notes:", "org.exämple.ノート:", "é:", "e\u{301}:"] {
            #expect(InvisibleCharacter(in: prefix) == nil)
        }
        let character = try #require(InvisibleCharacter(in: "com.example.test\u{200B}:"))
        try await TestApplication.with { app in
            func load(_ prefix: String) async throws {
                try await app.run { [postgres = app.postgres, clock = app.clock, known = app.configuration] in
                    var configuration = known
                    configuration.saltPrefix = prefix
                    _ = try await Installation.load(configuration: configuration, database: postgres, clock: clock)
                    try await Installation.check(saltPrefix: prefix, database: postgres)
                }
            }
            let error = InstallationError.saltPrefixShowsNot(character)
            await #expect(throws: error) { try await load("com.example.test\u{200B}:") }
            try await app.administer("DELETE FROM saltern.installation")
            await #expect(throws: error) { try await load("com.example.test\u{200B}:") }
            // One that was made by an earlier release.
            try await load("com.example.test:")
            try await app.administer("UPDATE saltern.installation SET salt_prefix = U&'com.example.test\\200B:'")
            try await load("com.example.test\u{200B}:")
        }
    }

    @Test func `salt prefixes are compared as they are written`() async throws {
        var configuration = TestApplication.configuration
        configuration.saltPrefix = "é:"
        try await TestApplication.with(configuration) { app in
            var other = app.configuration
            other.saltPrefix = "e\u{301}:"
            #expect(other.saltPrefix == app.configuration.saltPrefix)
            await #expect(throws: InstallationError.saltPrefixDiffers) {
                try await TestApplication.with(other, app.database, clock: app.clock) { _ in }
            }
        }
    }
}

extension TestApplication {
    /// Draws the decoys anew when they are due.
    func redraw() async throws -> Bool {
        let postgres = postgres
        let clock = clock
        return try await run { try await DecoyParameters.redraw(database: postgres, clock: clock) }
    }
}

extension TestResponse {
    /// The names of the body's members in their order.
    var names: [String] { (try? self[""]?.object())?.members.map(\.name.string) ?? [] }
}

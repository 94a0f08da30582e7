import HTTPCore
import Postgres
import SalternTesting
import Synchronization
import Testing

@testable import SalternServer

@Suite struct ExportTests {
    private static func export(_ account: TestAccount) async throws -> TestResponse {
        try await account.client.post(
            "/v1/account/export", ["currentPasswordKey": .string(account.passwordKey)])
    }

    /// The lines of an export, each parsed by itself.
    private static func lines(_ reply: TestResponse) throws -> [ExportedLine] {
        #expect(reply.body.last == 0x0A)
        return try reply.body.split(separator: 0x0A).map { try ExportedLine($0) }
    }

    /// The kind of record that tells of a table or of one of its columns, for every table that can name an account.
    private static let recordOfTable = [
        "accounts.account_id": "account", "logins.account_id": "credential", "sessions.account_id": "session",
        "items.account_id": "item", "deleted_contents.account_id": "deletedContent",
        "replaced_contents.account_id": "itemVersion",
        "recoveries.account_id": "recovery", "kept_keyrings.account_id": "keptKeyring",
        "second_factors.account_id": "secondFactor",
        "second_factor_codes.account_id": "secondFactor", "rotations.account_id": "rotation",
        "rotation_items.account_id": "stagedItem", "receipts.account_id": "receipt",
        "security_events.account_id": "securityEvent", "shares.owner_account": "share",
        "account_shares.account_id": "share", "passkeys.account_id": "passkey",
        "memberships.account_id": "membership", "vaults.owner_account": "vault",
    ]

    /// Acts of admins: the security log has those that concern the account. Events for the operator's services, until they
    /// are delivered. Challenges that passkeys have answered.
    private static let notExported: Set<String> = [
        "audit_log.target_account", "event_queues.account_id", "outgoing_events.account_id",
        "used_challenges.account_id",
    ]

    @Test func `every table that can name the account is told of, with as many lines as there are rows`() async throws {
        try await TestApplication.with { app in
            try await app.prepareAccountRows()
            let ada = try await app.register()
            let bob = try await app.register()
            for account in [ada, bob] { try await app.fillEveryTable(account) }
            _ = try await ada.client.put(
                "/v1/account/keyring",
                ["keyring": .string(Fixtures.sealed()), "recoveryKeyring": .string(Fixtures.sealed())],
                ["If-None-Match": "*"])
            let reply = try await Self.export(ada)
            #expect(reply.status == 200)
            #expect(reply.fields["Content-Type"] == "application/x-ndjson")
            let lines = try Self.lines(reply)
            let counts = lines.reduce(into: [String: Int]()) { $0[$1.type, default: 0] += 1 }
            let rows = try await app.accountRows(ada)
            #expect(Set(rows.keys).subtracting(Self.notExported) == Set(Self.recordOfTable.keys))
            for (table, type) in Self.recordOfTable where type != "secondFactor" {
                let count = counts[type, default: 0] + (type == "item" ? counts["tombstone", default: 0] : 0)
                #expect(Int64(count) == rows[table], "\(table)")
            }
            #expect(lines.first { $0.type == "secondFactor" }?.reply.integer("recoveryCodesLeft") == 10)
            #expect(counts["keyring"] == 1)
            #expect(counts["invite"] == 1)
            #expect(try await app.events(of: ada).count { $0 == "exported" } == 4)
            #expect(!reply.text.contains(bob.id))
        }
    }

    @Test func `an export has the vaults that the account owns, and of others only the membership`() async throws {
        try await TestApplication.with { app in
            var scene = try await VaultScene(app)
            let bob = try await scene.join(as: .writer)
            let head = ["If-None-Match": "*", "Vault-Head": "\(scene.log.head.number.value)"]
            let (kept, deleted) = (Fixtures.uuid(), Fixtures.uuid())
            for id in [kept, deleted] {
                let stored = try await bob.client.put("\(scene.path)/items/\(id)", scene.item(), head)
                try #require(stored.status == 201, "\(stored)")
            }
            let deletion = try await bob.client.delete(
                "\(scene.path)/items/\(deleted)", ["If-Match": "*", "Vault-Head": "\(scene.log.head.number.value)"])
            try #require(deletion.status == 200, "\(deletion)")
            let (generation, keys) = try scene.newKeys()
            try #require(try await scene.append(.rotate(generation), keys).status == 200)

            let lines = try Self.lines(try await Self.export(scene.founder.account))
            let counts = lines.reduce(into: [String: Int]()) { $0[$1.type, default: 0] += 1 }
            let expected = [
                "membership": 1, "vault": 1, "vaultMember": 2, "vaultKeyBox": 1, "vaultPreviousKey": 1,
                "vaultEntry": Int(scene.log.head.number.value), "vaultItem": 1, "vaultTombstone": 1,
                "vaultDeletedContent": 1,
            ]
            for (type, count) in expected { #expect(counts[type] == count, "\(type): \(counts)") }
            #expect(counts["item"] == nil)
            #expect(lines.first { $0.type == "vaultItem" }?.reply.string("id") == kept)
            for line in lines where line.type.hasPrefix("vault") && line.type != "vault" {
                #expect(line.reply.string("vault") == scene.log.vault.text)
            }
            let entries = lines.filter { $0.type == "vaultEntry" }.map { $0.reply.string("entry") }
            let log = try await scene.founder.client.get("\(scene.path)/log")
            #expect(log.array("entries") == entries.map { .string($0 ?? "") })
            // No word about the account of another member.
            #expect(!lines.contains { $0.reply.text.contains(bob.account.id) })

            let others = try Self.lines(try await Self.export(bob.account))
            #expect(others.count { $0.type == "membership" } == 1)
            #expect(!others.contains { $0.type.hasPrefix("vault") })
        }
    }

    @Test func `the first line says what this is, the last one how many there are`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register("ada")
            _ = try await ada.createItem()
            let lines = try Self.lines(try await Self.export(ada))
            let first = try #require(lines.first).reply
            #expect(first.string("type") == "export")
            #expect(first.integer("version") == 1)
            #expect(first.string("service") == "Test")
            #expect(first.string("exportedAt") == "2026-01-01T00:00:00.000Z")
            #expect(first.array("withheld")?.contains("credential.verifier") == true)
            let last = try #require(lines.last).reply
            #expect(
                last[""] == [
                    "type": "end",
                    "counts": [
                        "export": 1, "account": 1, "credential": 1, "session": 1, "securityEvent": 1, "item": 1,
                    ],
                ])
            let account = try #require(lines.first { $0.type == "account" }).reply
            #expect(account.string("userid") == "ada")
            #expect(account.string("plan") == "default")
            #expect(account.integer("limits.items") == 10_000)
            #expect(account.integer("usage.items") == 1)
            let credential = try #require(lines.first { $0.type == "credential" }).reply
            #expect(credential.integer("kdf.iterations") == 600_000)
        }
    }

    @Test func `items come as they were sent, each once, however many pages they take`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            // More rows than a page has, and more bytes; the first and the last identifier that there can be.
            try await app.administer(
                """
                INSERT INTO saltern.items
                    (account_id, item_id, revision, collection, format, body, created_at, updated_at)
                SELECT '\(ada.id)', CASE n WHEN 1 THEN '00000000-0000-0000-0000-000000000000'::uuid
                    WHEN 2 THEN 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid ELSE gen_random_uuid() END, n, 'default',
                    'opaque', convert_to(repeat('x', CASE WHEN n % 100 = 0 THEN 400000 ELSE 10 END), 'UTF8'), now(), now()
                FROM generate_series(1, 1700) n
                """)
            let path = try await ada.createItem()
            let sent = try await ada.client.get(path)
            let items = try Self.lines(try await Self.export(ada)).filter { $0.type == "item" }
            #expect(items.count == 1_701)
            #expect(Set(items.compactMap { $0.reply.string("id") }).count == 1_701)
            let item = try #require(items.first { $0.reply.string("id") == sent.string("id") }).reply
            #expect(item[""]?.without("type") == sent[""])
        }
    }

    @Test func `no piece is large, however large the account is`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            try await app.administer(
                """
                INSERT INTO saltern.items
                    (account_id, item_id, revision, collection, format, body, created_at, updated_at)
                SELECT '\(ada.id)', gen_random_uuid(), n, 'default', 'opaque',
                    convert_to(repeat('x', 20000), 'UTF8'), now(), now()
                FROM generate_series(1, 1000) n
                """)
            let body = ObservedBody()
            try await app.exportDirectly(ada, to: body)
            #expect(body.text.hasSuffix("\"item\":1000}}\n"))
            #expect(body.largestPiece < 2 * 1_048_576)
        }
    }

    @Test func `an export ends with its session, and without its last line`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            try await app.administer(
                """
                INSERT INTO saltern.items
                    (account_id, item_id, revision, collection, format, body, created_at, updated_at)
                SELECT '\(ada.id)', gen_random_uuid(), n, 'default', 'opaque', '\\x01', now(), now()
                FROM generate_series(1, 1500) n
                """)
            let body = ObservedBody { piece in
                guard piece.contains("\"type\":\"item\"") else { return }
                _ = try? await ada.client.delete("/v1/sessions/current")
            }
            await #expect(throws: ResponseStreamEnded.self) { try await app.exportDirectly(ada, to: body) }
            #expect(body.text.contains("\"type\":\"item\""))
            #expect(!body.text.contains("\"type\":\"end\""))
        }
    }

    @Test func `an account has few exports at once`() throws {
        let running = RunningExports()
        let ada = AccountID.random()
        var places = [try running.take(ada), try running.take(ada)]
        #expect(throws: TooManyExports.self) { try running.take(ada) }
        _ = try running.take(.random())
        places.removeLast()
        places.append(try running.take(ada))
        #expect(throws: TooManyExports.self) { try running.take(ada) }
        #expect(places.count == TooManyExports.limit)
    }

    @Test func `nothing that opens anything is shown`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            try await app.fillEveryTable(ada)
            let text = try await Self.export(ada).text
            for secret in try await app.execute(Secrets()) {
                #expect(!text.contains(secret), "\(secret)")
            }
            #expect(!text.contains(ada.passwordKey))
        }
    }

    /// What is stored and must not be shown, in base64 and in hexadecimal.
    private struct Secrets: Statement {
        typealias Row = String
        static let isReadOnly = true
        static let sql: SQL<Self> = """
            SELECT encode(s.secret, f.format) FROM (
                SELECT verifier AS secret FROM saltern.logins UNION ALL SELECT verifier FROM saltern.recoveries
                UNION ALL SELECT token_hash FROM saltern.sessions
                UNION ALL SELECT sealed_secret FROM saltern.second_factors
                UNION ALL SELECT code_hash FROM saltern.second_factor_codes
            ) s CROSS JOIN (VALUES ('hex'), ('base64')) AS f(format)
            """
    }

    @Test func `the present key is needed`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let refused = try await ada.client.post(
                "/v1/account/export", ["currentPasswordKey": .string(Fixtures.passwordKey("wrong"))])
            #expect(refused.status == 403)
            #expect(refused.code == "wrong_credentials")
            #expect(try await ada.client.post("/v1/account/export", [:]).code == "missing_member")
            #expect(try await app.events(of: ada).contains("exported") == false)
        }
    }
}

/// One line of an export, parsed.
struct ExportedLine {
    let reply: TestResponse
    let type: String

    init(_ bytes: some Collection<UInt8>) throws {
        reply = TestResponse(line: Array(bytes))
        type = try #require(reply.string("type"), "\(reply.text)")
    }
}

/// Keeps what is written, and looks at each piece.
final class ObservedBody: ResponseBodyWriter {
    private let state = Mutex<(bytes: [UInt8], largest: Int)>(([], 0))
    private let look: @Sendable (String) async -> Void

    init(_ look: @escaping @Sendable (String) async -> Void = { _ in }) {
        self.look = look
    }

    func write(_ bytes: [UInt8]) async throws(ResponseStreamEnded) {
        state.withLock { state in
            state.bytes += bytes
            state.largest = max(state.largest, bytes.count)
        }
        await look(String(decoding: bytes, as: UTF8.self))
    }

    var text: String { state.withLock { String(decoding: $0.bytes, as: UTF8.self) } }
    var largestPiece: Int { state.withLock { $0.largest } }
}

/// The token hashes of an account's sessions.
private struct StoredTokenHashes: Statement {
    typealias Row = TokenHash

    let accountID: AccountID

    static let isReadOnly = true
    static let sql: SQL<Self> = "SELECT s.token_hash FROM saltern.sessions s WHERE s.account_id = \(\.accountID)"
}

extension TestApplication {
    /// Exports an account as its only session would, without the request around it.
    func exportDirectly(_ account: TestAccount, to body: ObservedBody) async throws {
        let id = try #require(AccountID(pathParameter: account.id))
        let hash = try #require(try await execute(StoredTokenHashes(accountID: id)).first)
        let (postgres, clock, policy) = (postgres, clock, configuration.sessions)
        try await run {
            try await AccountExport(
                reader: AccountReader(
                    session: SessionKey(accountID: id, tokenHash: hash), database: postgres, clock: clock,
                    policy: policy),
                head: AccountExport.Head(service: "Test", exportedAt: clock.now),
                credential: AccountExport.Credential(iterations: 600_000, revision: 1)
            ).write(to: body)
        }
    }
}

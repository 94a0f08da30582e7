import Foundation
import Postgres
import SalternTesting
import Testing

@testable import SalternServer

@Suite struct StatementTests {
    @Test func `the list of statements is complete`() throws {
        var declared: Set<String> = []
        for source in try Self.sources() {
            for match in source.matches(of: /struct (\w+): (Statement|AccountRead|AccountWrite) \{/) {
                switch match.2 {
                case "AccountRead": declared.insert("Owned<\(match.1)>")
                case "AccountWrite": declared.insert("Guarded<\(match.1)>")
                default: declared.insert(String(match.1))
                }
            }
        }
        #expect(declared.count > 15)
        #expect(Set(Application.statements.map(\.name)) == declared)
    }

    @Test func `the server's role can prepare every statement`() async throws {
        try await TestApplication.with { app in
            for (index, statement) in Application.statements.enumerated() {
                await #expect(throws: Never.self, "\(statement.name)") {
                    try await app.script("PREPARE s\(index) AS \(statement.sql)", url: app.database.serverURL)
                }
            }
        }
    }

    @Test(arguments: Application.statements.map(\.name))
    func `a statement names its account and obeys the rules of distribution`(_ name: String) throws {
        let sql = try #require(Application.statements.first { $0.name == name }?.sql)
        let flat = sql.replacing(/\s+/, with: " ")
        // An advisory lock belongs to no table; what is due for purging is looked for in all accounts, and only read.
        if name == "TakePurgeLock" { return }
        if ["FindEndedSessions", "FindExpiredContents", "FindOldTombstones"].contains(name) {
            #expect(flat.hasPrefix("SELECT") && !flat.contains("FOR UPDATE"))
            return
        }
        let tables = Set(flat.matches(of: /(?:FROM|JOIN|INTO|UPDATE) saltern\.(\w+)/).map { String($0.1) })
        #expect(!tables.isEmpty)
        // The one question for many accounts: every row is still found by its account.
        let owned = name == "FindMovedRevisions" ? "w.account_id" : "$1"
        if owned == "$1", !tables.isDisjoint(with: ["accounts", "sessions", "items", "deleted_contents"]) {
            #expect(flat.contains("account_id = $1") || flat.contains(/\((account_id)[^)]*\) VALUES \(\$1/), "\(name)")
        }
        // Every read of an account's table is restricted to the account where it is named.
        for alias in flat.matches(
            of:
                /(?:FROM|JOIN|UPDATE) saltern\.(?:accounts|sessions|items|deleted_contents)(?: (?:AS )?(?!SET|WHERE|JOIN|ON|LEFT)(\w+))?/
        ) {
            let owner = alias.1.map { "\($0)." } ?? ""
            #expect(flat.contains("\(owner)account_id = \(owned)"), "\(name) \(alias.0)")
        }
        #expect(!flat.contains(/VALUES \([^)]*SELECT/), "no scalar subquery in VALUES")
        #expect(!flat.contains(/ON CONFLICT .* SET .*(now\(\)|CURRENT_TIMESTAMP|random\(\))/))
        #expect(
            !flat.contains(/\b(now|clock_timestamp|random|gen_random_uuid|nextval)\(/),
            "the time and randomness are parameters")
        if name.hasPrefix("Guarded<") {
            #expect(sql.contains(Caller.hasLiveSession), "a write must guard itself")
        }
    }

    @Test func `a write without a live session changes nothing by itself`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let path = try await ada.createItem()
            let account = try #require(AccountID(pathParameter: ada.id))
            let item = try #require(ItemID(pathParameter: String(path.dropFirst("/v1/items/".count))))
            // The right account with a token that nobody has.
            let stranger = try Caller(
                PresentedToken(RequestFieldsFixture.bearer(SessionToken(for: account).text)), now: app.clock.now,
                policy: SessionPolicy())
            let session = try #require(SessionID(pathParameter: ada.sessionID))
            let sealed = try SealedBytes([UInt8](repeating: 0xFF, count: 3), format: .opaque)
            let write = WriteItem(
                id: item, precondition: .present, collection: .standard, format: .opaque, iterations: nil, title: nil,
                body: sealed)
            #expect(try await app.execute(Guarded(caller: stranger, write: write)).isEmpty)
            #expect(
                try await app.execute(Guarded(caller: stranger, write: BuryItem(id: item, precondition: .present)))
                    .isEmpty)
            #expect(try await app.execute(Guarded(caller: stranger, write: RemoveSession(id: session))).isEmpty)
            #expect(try await app.execute(Guarded(caller: stranger, write: RemoveOtherSessions())).isEmpty)
            #expect(try await app.execute(Guarded(caller: stranger, write: RemoveCurrentSession())).isEmpty)
            #expect(try await ada.client.get(path).integer("revision") == 1)
            #expect(try await ada.client.get("/v1/account").integer("usage.sessions") == 1)
        }
    }

    private static func sources() throws -> [String] {
        let folder = SchemaTests.folder("Sources/SalternServer")
        let files = try FileManager.default.subpathsOfDirectory(atPath: folder).filter { $0.hasSuffix(".swift") }
        return try files.map { try String(contentsOfFile: folder + "/" + $0, encoding: .utf8) }
    }
}

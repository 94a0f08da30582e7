import Foundation
import Postgres
import SalternTesting
import Testing

@testable import SalternServer

@Suite struct StatementTests {
    /// The SQL of each statement by its name. `Application.statements` is computed at each access.
    private static let sqlByName = Dictionary(
        Application.statements.map { ($0.name, $0.sql) }, uniquingKeysWith: { first, _ in first })

    @Test func `the list of statements is complete`() throws {
        // Statements of the purge are for accounts and vaults.
        var declared = Set(Self.ofPurge.map { "StepInVault<\($0)>" })
        for source in try Self.sources() {
            for match in source.matches(of: /(?:struct|enum|extension) (\w+): ([^{]+) \{/) {
                for kind in Self.conformances(match.2) {
                    declared.formUnion(Self.types(of: String(match.1), kind: kind) ?? [])
                }
            }
        }
        #expect(declared.count > 400)
        let listed = Application.statements.map(\.name)
        #expect(Set(listed) == declared)
        #expect(listed.count == declared.count, "no statement is listed twice")
    }

    @Test func `every kind of statement has a case here`() throws {
        var kinds: Set<String> = []
        for source in try Self.sources() {
            for match in source.matches(of: /protocol (\w+): ([^{]+) \{/)
            where Self.conformances(match.2).contains(where: { Self.types(of: "S", kind: $0) != nil }) {
                kinds.insert(String(match.1))
            }
        }
        #expect(kinds.contains("ShortPath") && kinds.contains("OldestRows"))
        for kind in kinds { #expect(Self.types(of: "S", kind: kind) != nil, "\(kind)") }
    }

    /// The names after the colon of a declaration.
    private static func conformances(_ text: Substring) -> [String] {
        text.replacing(/\s+where\s[^{]*/, with: "").split(separator: ",").map { $0.filter { !$0.isWhitespace } }
    }

    /// The types that the server sends for a statement with this name; nil if the protocol is not one of statements.
    private static func types(of name: String, kind: String) -> [String]? {
        switch kind {
        case "Statement", "DueRows", "OldestRows": [name]
        case "SessionRemoval": [name, "RecordSessionEnds<\(name)>"]
        case "CallersSessionRemoval":
            ["Guarded<\(name)>"]
                + ["RecordCallersSessionEnds", "QueueCallersEnds", "StoreCallersEnds"].map {
                    "Guarded<\($0)<\(name)>>"
                }
        case "AccountRead", "ExportedPage": ["Owned<\(name)>"]
        case "ItemRead": ["Owned<\(name)>", "OwnedByVault<\(name)>"]
        case "AccountWrite": ["Guarded<\(name)>"]
        case "ItemWrite", "ShortPath": ["Guarded<\(name)>", "GuardedInVault<\(name)>"]
        case "ItemStep": [name, "StepInVault<\(name)>"]
        default: nil
        }
    }

    private static let ofPurge = [
        "LockAccount", "FindExpiredContents", "FindExpiredVersions", "FindOldTombstones", "RemoveContents",
        "RemoveVersions", "RemoveTombstones", "FindDueTombstones", "FindDueContents", "FindDueVersions",
    ]

    @Test func `the server's role can prepare every statement`() async throws {
        try await TestApplication.with { app in
            for (index, statement) in Application.statements.enumerated() {
                // SQL's own PREPARE takes no LOCK, and infers the types that the program sends. Of a time before an
                // interval it infers another interval.
                let text = statement.sql.replacing(/(\$\d+) \+ make_interval/) {
                    "\($0.1)::timestamptz + make_interval"
                }
                let sql =
                    statement.name == "BlockChanges" ? "BEGIN; \(text); ROLLBACK" : "PREPARE s\(index) AS \(text)"
                await #expect(throws: Never.self, "\(statement.name)") {
                    try await app.script(sql, url: app.database.serverURL)
                }
            }
        }
    }

    /// Statements that look into many accounts, or into none, and why they may. They change nothing that is spread.
    private static let acrossAccounts: Set<String> = [
        // What is due for purging is looked for everywhere.
        "FindExpiredInvitations", "StepInVault<FindExpiredContents>", "StepInVault<FindExpiredVersions>",
        "StepInVault<FindOldTombstones>", "StepInVault<FindDueTombstones>", "StepInVault<FindDueContents>",
        "StepInVault<FindDueVersions>", "FindDueInvitations",
        "FindEndedSessions", "FindExpiredContents", "FindExpiredVersions", "FindDueVersions", "FindOldTombstones",
        "FindExpiredKeyrings", "FindExpiredChallenges", "FindDueKeyrings", "FindDueChallenges", "FindEndedShares",
        "FindOldEvents", "FindOldAttempts",
        "FindExpiredRotations", "FindDueTombstones", "FindDueContents", "FindDueRotations",
        "FindDueEvents", "FindDueAttempts", "FindDueShares",
        // A destination's events are everywhere.
        "FindDueQueues", "FindTestQueue", "FindWaitingEvents", "FindParkedEvents", "FindEventsByID", "FindUndelivered",
        "FindEventKeys",
        "FindAccountsOfDestination", "FindOverdueEvents", "FindExpiredEvents", "FindIdleQueues",
        // Master keys are counted and exchanged everywhere.
        "CountSealedSecrets", "FindOutdatedSecrets",
        // An advisory lock belongs to no table, nor does a setting; the base is moved while nobody changes anything.
        "TakePurgeLock", "ReleasePurgeLock", "HoldPurgeLock", "BeginPurgeSlice", "JoinWholeSets", "LimitLockWait",
        "BlockChanges",
        // After a restore the sessions of all accounts end.
        "FindAccountsWithSessions",
        // A hash is a thing of no table.
        "FindHashParts",
        // Readiness: whether every node answers.
        "ReadEveryNode",
        // What PostgreSQL says of its own log is in no table, and neither is a mark of a restore.
        "ReadReplicationState", "FindRestoreMark",
        // The quantiles of all accounts, once a day.
        "SampleIterations",
        // An operator's questions, asked by hand.
        "FindInvites", "FindInvite", "FindLogins", "SummarizeAccounts", "FindLockedAccounts",
        "FindPlanUse",
        "FindNeverUsedAccounts", "ConfirmNeverUsed", "SumUpAccounts", "CountLiveSessions", "CountTheRest",
    ]

    /// Statements that are about the database's own time.
    private static let tellingTheTime: Set<String> = ["ReadDatabase", "AppendAudit"]

    @Test(arguments: sqlByName.keys.sorted())
    func `a statement names the key of every table, and obeys the rules of distribution`(_ name: String) throws {
        let sql = try #require(Self.sqlByName[name])
        let flat = sql.replacing(/\s+/, with: " ")
        #expect(!flat.contains(/VALUES \([^)]*SELECT/), "no scalar subquery in VALUES")
        #expect(!flat.contains(/ON CONFLICT .* SET .*(now\(\)|CURRENT_TIMESTAMP|random\(\))/))
        // Both depend on the session's time zone. `timestamp AT TIME ZONE` does not.
        #expect(!flat.contains(/timestamptz [+-] (interval|make_interval)/), "arithmetic of times is immutable")
        if !Self.tellingTheTime.contains(name) {
            #expect(
                !flat.contains(/\b(now|clock_timestamp|random|gen_random_uuid|nextval)\(/),
                "the time and randomness are parameters")
        }
        if name.hasPrefix("Guarded<") {
            let guardian = Caller.isLiveSession.text.replacing(/\$\d+/, with: "$")
            #expect(sql.replacing(/\$\d+/, with: "$").contains(guardian), "a write must guard itself")
        }
        if Self.acrossAccounts.contains(name) {
            #expect(!flat.contains("FOR UPDATE"))
            for table in flat.matches(of: /(?:INTO|DELETE FROM|UPDATE) saltern\.(\w+)/) {
                #expect(SchemaTests.distributionColumn(of: String(table.1)) == nil, "\(table.0)")
            }
            return
        }
        var tables: Set<String> = []
        for table in flat.matches(
            of: /(?:FROM|JOIN|UPDATE|,) saltern\.(\w+)(?: (?:AS )?(?!SET|WHERE|JOIN|ON|LEFT|ORDER|LIMIT)(\w+))?/)
        {
            tables.insert(String(table.1))
            guard let column = SchemaTests.distributionColumn(of: String(table.1)) else { continue }
            let owner = table.2.map { "\($0)." } ?? ""
            // The questions for many accounts or vaults: every row is still found by its account or vault.
            let named =
                [" = $", " = ANY($"]
                + (["FindMovedRevisions", "FindLiveSessions"].contains(name) ? [" = a.account_id"] : [])
                + (["FindMovedVaults", "FindLiveMemberships"].contains(name) ? [" = a.vault_id"] : [])
            #expect(named.contains { flat.contains(owner + column + $0) }, "\(name): \(table.0)")
        }
        for table in flat.matches(of: /INTO saltern\.(\w+)(?: AS \w+)? \(([^)]*)\)/) {
            tables.insert(String(table.1))
            guard let column = SchemaTests.distributionColumn(of: String(table.1)) else { continue }
            #expect(table.2.hasPrefix(column), "\(name): an insert begins with the key")
        }
        // It is about the statements that follow it.
        #expect(tables.isEmpty == (name == "PlanForParameters"))
    }

    /// Statements that end sessions and need tell no write of it: such a session writes nothing, or the account goes, too.
    private static let endingSilently: Set<String> = ["RemoveRestrictedSessions", "RemoveSessionsAltogether"]

    @Test func `whoever ends a session also changes the account's row`() {
        var found: Set<String> = []
        for (name, sql) in Application.statements where sql.contains("DELETE FROM saltern.sessions") {
            found.insert(name)
            let isTelling = sql.contains("UPDATE saltern.accounts")
            #expect(isTelling == !Self.endingSilently.contains(name), "\(name)")
        }
        #expect(found.count >= 7 && found.isSuperset(of: Self.endingSilently))
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
            #expect(try await app.execute(Guarded(caller: stranger, write: ReplaceItem(write: write))).isEmpty)
            let creation = CreateItem(
                write: WriteItem(
                    id: .random(), precondition: .absent, collection: .standard, format: .opaque, iterations: nil,
                    title: nil, body: sealed))
            #expect(try await app.execute(Guarded(caller: stranger, write: creation)).isEmpty)
            let decision = DecideDeletion(id: item, precondition: .present)
            #expect(try await app.execute(Guarded(caller: stranger, write: decision)).isEmpty)
            #expect(try await app.execute(Guarded(caller: stranger, write: DeleteOneItem(decision: decision))).isEmpty)
            let noting = Guarded(caller: stranger, write: RecordCallersSessionEnds(removal: RemoveSession(id: session)))
            #expect(try await app.execute(noting).first?.count == 0)
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

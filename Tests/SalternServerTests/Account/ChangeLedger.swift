import Postgres
import SalternTesting
import Synchronization
import Testing

@testable import SalternServer

/// What was told to those who changed an account's items and logged in to it, to be compared with what is there in the end.
final class ChangeLedger: Sendable {
    /// What somebody was told of a change.
    enum Word: Equatable {
        case done(revision: Int64)
        case refused
        /// Nobody can know.
        case inDoubt
    }

    private struct Change {
        let item: UUID
        /// Nil when it was to be deleted.
        let body: [UInt8]?
        let word: Word
    }

    private struct Told {
        var changes: [Change] = []
        var sessions: [UUID] = []
        var sessionsInDoubt = 0
    }

    let account: TestAccount
    private let told = Mutex(Told())

    init(_ account: TestAccount) { self.account = account }

    func note(_ item: UUID, _ body: [UInt8]?, _ word: Word) {
        told.withLock { $0.changes.append(Change(item: item, body: body, word: word)) }
    }

    func note(session: UUID?) {
        told.withLock { told in
            if let session { told.sessions.append(session) } else { told.sessionsInDoubt += 1 }
        }
    }

    /// Compares with what is there. Nothing may be under way any more.
    /// - Returns: How many were told that their change is done.
    func check(_ postgres: SeparateClient, _ why: Comment) async throws -> Int {
        let id = try #require(AccountID(pathParameter: account.id))
        let (rows, revisions, sessions) = try await postgres.run { postgres in
            (
                try await postgres.execute(FindItemRows(accountID: id)),
                try await postgres.execute(FindAccountRevision(accountID: id)),
                try await postgres.execute(FindSessionIDs(accountID: id))
            )
        }
        let told = told.withLock { $0 }
        var done: [Int64: Change] = [:]
        for change in told.changes {
            guard case .done(let revision) = change.word else { continue }
            #expect(done.updateValue(change, forKey: revision) == nil, "two changes have one revision: \(why)")
        }
        let doubtful = told.changes.filter { $0.word == .inDoubt }
        let revision = try #require(revisions.first)
        // Each change is done once or not at all.
        #expect((done.count...done.count + doubtful.count).contains(Int(revision)), why)
        #expect(done.keys.max() ?? 0 <= revision, why)
        let byItem = Dictionary(rows.map { ($0.item, $0) }) { first, _ in first }
        for change in done.values {
            guard case .done(let revision) = change.word else { continue }
            #expect(byItem[change.item]?.revision ?? 0 >= revision, "told to be done: \(why)")
        }
        #expect(Set(rows.map(\.revision)).count == rows.count, why)
        for row in rows {
            if let change = done[row.revision] {
                #expect(change.item == row.item && change.body == row.body, "another content than told: \(why)")
            } else {
                #expect(doubtful.contains { $0.item == row.item && $0.body == row.body }, "of nobody: \(why)")
            }
        }
        #expect(Set(told.sessions).isSubset(of: sessions), why)
        // One was opened by the registration.
        #expect((told.sessions.count...told.sessions.count + told.sessionsInDoubt).contains(sessions.count - 1), why)
        return done.count + told.sessions.count
    }
}

private struct FindItemRows: Statement {
    let accountID: AccountID

    struct Row: Sendable {
        let item: UUID
        let revision: Int64
        /// Nil of a tombstone.
        let body: [UInt8]?
    }

    static let isReadOnly = true
    static let sql: SQL<Self> =
        "SELECT i.item_id, i.revision, i.body FROM saltern.items i WHERE i.account_id = \(\.accountID)"

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

private struct FindAccountRevision: Statement {
    typealias Row = Int64

    let accountID: AccountID

    static let isReadOnly = true
    static let sql: SQL<Self> = "SELECT a.revision FROM saltern.accounts a WHERE a.account_id = \(\.accountID)"
}

private struct FindSessionIDs: Statement {
    typealias Row = UUID

    let accountID: AccountID

    static let isReadOnly = true
    static let sql: SQL<Self> = "SELECT s.session_id FROM saltern.sessions s WHERE s.account_id = \(\.accountID)"
}

internal import Cryptography
public import Postgres

/// Reads and verifies the audit log.
public struct AuditReview {
    private let database: PostgresClient
    private let sliceSize: Int64

    /// - Parameters:
    ///   - database: Has the rights of the owner or of the server's role.
    ///   - sliceSize: The number of rows in memory at a time.
    public init(database: PostgresClient, sliceSize: Int64 = 1_000) {
        self.database = database
        self.sliceSize = sliceSize
    }

    /// Verifies the whole chain.
    ///
    /// It reads rows and head in one snapshot, so rows that are appended meanwhile cause no fault.
    ///
    /// - Parameter noted: A position that was noted earlier. It must still be in the chain.
    /// - Parameter timesThatWentBack: Receives the numbers of the first 20 rows with a time before the previous row's.
    ///   Such a row may be genuine, because clocks are set.
    /// - Returns: The end of the chain.
    /// - Throws: An ``AuditFinding`` about the first faulty row, or a `PostgresError`.
    public func verify(
        noted: AuditPlace? = nil, timesThatWentBack: ([Int64]) -> Void = { _ in }
    ) async throws -> AuditPlace {
        try await database.withTransaction(isolation: .repeatableRead) { transaction in
            var chain = try AuditChain(noted: noted)
            let head = try await transaction.execute(FindAuditHead()).first
            while true {
                let slice = try await transaction.execute(
                    FindAuditEntries(after: chain.end.sequence, limit: sliceSize))
                for entry in slice { try chain.follow(entry) }
                if slice.count < sliceSize { break }
            }
            try chain.finish(head: head)
            if !chain.timesThatWentBack.isEmpty { timesThatWentBack(chain.timesThatWentBack) }
            return chain.end
        }
    }

    /// Returns the latest rows, latest first.
    ///
    /// - Parameter before: Only rows with a lower number.
    public func latest(_ limit: Int, before: Int64 = .max) async throws(PostgresError) -> [AuditEntry] {
        try await database.execute(FindLatestAuditEntries(before: before, limit: Int64(limit)))
    }
}

/// A position in the chain: a row's number and hash, as an operator notes it.
public struct AuditPlace: Sendable, Hashable, CustomStringConvertible {
    /// 0 before the first row.
    public let sequence: Int64
    public let hash: AuditHash

    init(sequence: Int64, hash: AuditHash) {
        self.sequence = sequence
        self.hash = hash
    }

    /// Reads `SEQUENCE:HASH`.
    public init?(_ text: String) {
        let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, let sequence = Int64(parts[0]), sequence >= 0, let hash = AuditHash(parts[1]) else {
            return nil
        }
        self.init(sequence: sequence, hash: hash)
    }

    /// `SEQUENCE:HASH`.
    public var description: String { "\(sequence):\(hash)" }
}

/// The first fault that a check of the audit log finds.
public struct AuditFinding: Error, Sendable, Equatable, CustomStringConvertible {
    public let sequence: Int64
    public let kind: Kind

    /// The kind of fault.
    public enum Kind: Sendable, Equatable {
        /// The row is missing, although later ones or the head exist.
        case missing
        /// The row's content does not match its hash.
        case changed
        /// The row does not contain the hash of the previous one: one of the two was exchanged.
        case unconnected
        /// The head differs from the last row.
        case headDiffers
        /// The row is behind the head: it was inserted without moving the head.
        case beyondHead
        /// The head is missing.
        case headMissing
        /// The row differs from the noted one.
        case notAsNoted
    }

    public var description: String {
        switch kind {
        case .missing: "row \(sequence) is missing"
        case .changed: "row \(sequence) was changed"
        case .unconnected: "row \(sequence) does not continue row \(sequence - 1): one of the two was replaced"
        case .headDiffers: "row \(sequence) does not match the head of the chain"
        case .beyondHead: "row \(sequence) follows the head of the chain: it was inserted"
        case .headMissing: "the head of the chain is missing, row \(sequence) and later ones may be too"
        case .notAsNoted: "row \(sequence) does not match the noted head"
        }
    }
}

/// Checks the chain row by row and keeps only its end. A pure value: the caller reads the rows.
struct AuditChain {
    /// The position before the first row, which contains this hash as the previous one.
    static let beginning = AuditPlace(sequence: 0, hash: AuditHash(.zero))

    private(set) var end = AuditChain.beginning
    /// The numbers of the first rows with a time before the previous row's. Either the database's clock was set back,
    /// or the schema's owner has written the row.
    private(set) var timesThatWentBack: [Int64] = []
    private var lastTime: Timestamp?
    /// Programs older than migration 13 stamp a row before they wait for the head.
    private static let tolerance = Duration.seconds(60)
    private static let shownTimes = 20
    /// The position that an operator noted.
    let noted: AuditPlace?

    init(noted: AuditPlace? = nil) throws(AuditFinding) {
        self.noted = noted
        try compareWithNoted()
    }

    /// Checks the next row in the order of numbers.
    mutating func follow(_ entry: AuditEntry) throws(AuditFinding) {
        let expected = end.sequence + 1
        guard entry.sequence == expected else { throw AuditFinding(sequence: expected, kind: .missing) }
        guard entry.computedHash == entry.hash else { throw AuditFinding(sequence: expected, kind: .changed) }
        guard entry.previousHash == end.hash else { throw AuditFinding(sequence: expected, kind: .unconnected) }
        end = AuditPlace(sequence: entry.sequence, hash: entry.hash)
        if let lastTime, entry.occurredAt < lastTime - Self.tolerance, timesThatWentBack.count < Self.shownTimes {
            timesThatWentBack.append(entry.sequence)
        }
        lastTime = entry.occurredAt
        try compareWithNoted()
    }

    /// Compares the last row with the head, which was read in the same snapshot.
    func finish(head: AuditPlace?) throws(AuditFinding) {
        guard let head else { throw AuditFinding(sequence: end.sequence + 1, kind: .headMissing) }
        if head.sequence > end.sequence { throw AuditFinding(sequence: end.sequence + 1, kind: .missing) }
        if head.sequence < end.sequence { throw AuditFinding(sequence: head.sequence + 1, kind: .beyondHead) }
        if head.hash != end.hash { throw AuditFinding(sequence: end.sequence, kind: .headDiffers) }
        // Head and rows may have been cut off together.
        if let noted, noted.sequence > end.sequence { throw AuditFinding(sequence: end.sequence + 1, kind: .missing) }
    }

    private func compareWithNoted() throws(AuditFinding) {
        guard let noted, noted.sequence == end.sequence, noted.hash != end.hash else { return }
        throw AuditFinding(sequence: noted.sequence, kind: .notAsNoted)
    }
}

/// Finds the end of the chain.
struct FindAuditHead: Statement {
    static let isReadOnly = true
    static let sql: SQL<Self> = "SELECT sequence, hash FROM saltern.audit_head WHERE singleton"

    static func decode(_ row: inout RowReader) throws(PostgresError) -> AuditPlace { try row.read(AuditPlace.init) }
}

/// Finds rows behind a position, in the order of the chain.
struct FindAuditEntries: Statement {
    typealias Row = AuditEntry

    let after: Int64
    let limit: Int64

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT \(AuditEntry.columns) FROM saltern.audit_log WHERE sequence > \(\.after)
            ORDER BY sequence LIMIT \(\.limit)
        """
}

/// Finds the latest rows before a position, latest first.
struct FindLatestAuditEntries: Statement {
    typealias Row = AuditEntry

    let before: Int64
    let limit: Int64

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT \(AuditEntry.columns) FROM saltern.audit_log WHERE sequence < \(\.before)
            ORDER BY sequence DESC LIMIT \(\.limit)
        """
}

/// The statements of the audit log.
extension StatementList {
    static var auditLog: [any Statement.Type] {
        [
            AppendAudit.self, FindAuditHead.self, FindAuditEntries.self, FindLatestAuditEntries.self,
            FindBackupTimes.self,
        ]
    }
}

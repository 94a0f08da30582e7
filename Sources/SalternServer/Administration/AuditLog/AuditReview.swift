public import Postgres

/// Reads the audit log for those who have to trust it.
public struct AuditReview {
    private let database: PostgresClient
    private let sliceSize: Int64

    /// - Parameters:
    ///   - database: With the rights of the owner or of the server's role.
    ///   - sliceSize: How many rows are held in memory at a time.
    public init(database: PostgresClient, sliceSize: Int64 = 1_000) {
        self.database = database
        self.sliceSize = sliceSize
    }

    /// Walks the whole chain.
    ///
    /// Rows and head are read in one snapshot, so what is appended meanwhile does not look like a forgery.
    /// - Parameter noted: A place that was noted earlier: it has to be in the chain still.
    /// - Parameter timesThatWentBack: Called with the numbers of rows whose time is before that of the row in front of them,
    ///   the first 20. Such a row may be as it was written: clocks are set.
    /// - Returns: The end of the chain.
    /// - Throws: An ``AuditFinding`` about the first row that is not as it was written, or a `PostgresError`.
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

    /// The latest rows, latest first.
    /// - Parameter before: Only rows with a lower number.
    public func latest(_ limit: Int, before: Int64 = .max) async throws(PostgresError) -> [AuditEntry] {
        try await database.execute(FindLatestAuditEntries(before: before, limit: Int64(limit)))
    }
}

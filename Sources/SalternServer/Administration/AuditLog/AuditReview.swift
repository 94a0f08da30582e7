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

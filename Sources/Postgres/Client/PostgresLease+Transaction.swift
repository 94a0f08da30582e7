extension PostgresLease {
    /// Runs `body` in a transaction on this connection: commits when it returns, rolls back when it throws.
    ///
    /// After an error the connection must not be used for anything else.
    public func withTransaction<Result>(_ body: (Transaction) async throws -> Result) async throws -> Result {
        let transaction = Transaction(client: client, lease: self, isolation: .readCommitted)
        do {
            let result = try await body(transaction)
            try await transaction.commit()
            return result
        } catch {
            _ = await transaction.rollBack()
            throw error
        }
    }
}

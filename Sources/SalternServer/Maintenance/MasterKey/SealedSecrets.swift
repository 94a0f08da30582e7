internal import Cryptography
public import Postgres

/// Everything in the database that a master key has sealed, for those who look after the master key.
public struct SealedSecrets {
    private let database: PostgresClient
    private let sliceSize: Int64

    /// - Parameters:
    ///   - database: With the rights of the owner or of the server's role.
    ///   - sliceSize: How many rows are held in memory at a time.
    public init(database: PostgresClient, sliceSize: Int64 = 500) {
        self.database = database
        self.sliceSize = sliceSize
    }

    /// How many secrets each key has sealed. Those whose form nobody knows count for no key.
    public func counts() async throws(PostgresError) -> [MasterKeyID: Int64] {
        var counts: [MasterKeyID: Int64] = [:]
        for row in try await database.execute(CountSealedSecrets()) {
            guard let id = try? MasterKey.id(ofKeyThatSealed: row.header) else { continue }
            counts[id, default: 0] += row.count
        }
        return counts
    }

    /// What ``reseal(with:)`` has done.
    public struct Report: Sendable {
        public var resealed = 0
        /// Those that none of the keys opens; they are as they were.
        public var unreadable: [(accountID: AccountID, reason: MasterKeyError)] = []
    }

    /// Seals with the active key whatever another one has sealed.
    ///
    /// Each secret is replaced by itself and only if it is still the one that was read, so people can log in, and set up
    /// and remove second factors, meanwhile. It may be stopped at any time and run again.
    /// - Parameter noting: Told how many were sealed so far, after each slice.
    public func reseal(with masterKey: MasterKey, noting: (Int) -> Void = { _ in }) async throws -> Report {
        var report = Report()
        var last = AccountID(UUID.zero)
        while true {
            let slice = try await database.execute(
                FindOutdatedSecrets(after: last, activeHeader: masterKey.activeHeader, limit: sliceSize))
            for row in slice {
                last = row.accountID
                do {
                    let place = SealedPlace.oneTimePasswords(of: row.accountID)
                    let secret = try masterKey.open(row.sealedSecret, for: place)
                    if try await replace(row, secret, masterKey) { report.resealed += 1 }
                } catch let error as MasterKeyError {
                    report.unreadable.append((row.accountID, error))
                }
            }
            noting(report.resealed)
            if slice.count < sliceSize { return report }
        }
    }

    private func replace(
        _ row: FindOutdatedSecrets.Row, _ secret: SecureBytes, _ masterKey: MasterKey
    ) async throws -> Bool {
        let sealed = try masterKey.seal(secret, for: .oneTimePasswords(of: row.accountID))
        let replacement = ReplaceSealedSecret(accountID: row.accountID, old: row.sealedSecret, new: sealed)
        return try await database.execute(replacement, key: .account(row.accountID)).first != nil
    }
}

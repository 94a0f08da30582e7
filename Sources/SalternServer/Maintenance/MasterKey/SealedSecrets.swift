internal import Cryptography
public import Postgres

/// Counts and reseals the secrets in the database that a master key has sealed.
public struct SealedSecrets {
    private let database: PostgresClient
    private let sliceSize: Int64

    /// - Parameters:
    ///   - database: Has the rights of the owner or of the server's role.
    ///   - sliceSize: The number of rows in memory at a time.
    public init(database: PostgresClient, sliceSize: Int64 = 500) {
        self.database = database
        self.sliceSize = sliceSize
    }

    /// Returns the number of secrets of each key. Secrets of an unknown format are omitted.
    public func counts() async throws(PostgresError) -> [MasterKeyID: Int64] {
        var counts: [MasterKeyID: Int64] = [:]
        let (secrets, pairwiseKeys, destinations) = try await database.execute(
            CountSealedSecrets(), FindSealedPairwiseKey(), FindDestinations())
        let single = pairwiseKeys + destinations.flatMap(\.sealedSecrets)
        for (header, count) in secrets.map({ ($0.header, $0.count) }) + single.map({ ($0, 1) }) {
            guard let id = try? MasterKey.id(ofKeyThatSealed: header) else { continue }
            counts[id, default: 0] += count
        }
        return counts
    }

    /// The result of ``reseal(with:noting:)``.
    public struct Report: Sendable {
        public var resealed = 0
        /// Secrets that none of the keys opens. They stay unchanged.
        public var unreadable: [(secret: Secret, reason: MasterKeyError)] = []
    }

    /// The owner of a sealed secret.
    public enum Secret: Hashable, Sendable, CustomStringConvertible {
        /// The one-time passwords of an account.
        case oneTimePasswords(AccountID)
        /// The installation's pairwise key.
        case pairwiseKey
        /// The secrets of a destination.
        case destination(DestinationName)

        public var description: String {
            switch self {
            case .oneTimePasswords(let account): "the secret of account \(account)"
            case .pairwiseKey: "the pairwise key"
            case .destination(let name): "the secret of destination \(name)"
            }
        }
    }

    /// Reseals all secrets of other keys with the active key.
    ///
    /// Each secret is replaced separately and only if it is unchanged. Log-ins, and changes of second factors, are
    /// possible meanwhile. It may be stopped at any time and run again.
    ///
    /// - Parameter noting: Receives the number of resealed secrets after each slice.
    public func reseal(with masterKey: MasterKey, noting: (Int) -> Void = { _ in }) async throws -> Report {
        var report = Report()
        try await resealPairwiseKey(with: masterKey, &report)
        try await resealDestinations(with: masterKey, &report)
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
                    report.unreadable.append((.oneTimePasswords(row.accountID), error))
                }
            }
            noting(report.resealed)
            if slice.count < sliceSize { return report }
        }
    }

    private func resealPairwiseKey(with masterKey: MasterKey, _ report: inout Report) async throws {
        guard let old = try await database.execute(FindSealedPairwiseKey()).first,
            !old.starts(with: masterKey.activeHeader)
        else { return }
        do {
            let new = try PairwiseKey(sealed: old, masterKey: masterKey).sealed(by: masterKey)
            let replaced = try await database.execute(ReplaceSealedPairwiseKey(old: old, new: new))
            if !replaced.isEmpty { report.resealed += 1 }
        } catch let error as MasterKeyError {
            report.unreadable.append((.pairwiseKey, error))
        }
    }

    private func resealDestinations(with masterKey: MasterKey, _ report: inout Report) async throws {
        for destination in try await database.execute(FindDestinations()) {
            let old = destination.sealedSecrets
            guard let first = old.first, !old.allSatisfy({ $0.starts(with: masterKey.activeHeader) }) else { continue }
            do {
                let place = SealedPlace.destination(destination.id)
                let new = try old.map { try masterKey.seal(masterKey.open($0, for: place), for: place) }
                let replaced = try await database.execute(
                    ReplaceDestinationSecrets(
                        id: destination.id, old: first, new: new[0], newPrevious: new.count > 1 ? new[1] : nil))
                if !replaced.isEmpty { report.resealed += new.count }
            } catch let error as MasterKeyError {
                report.unreadable.append((.destination(destination.name), error))
            }
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

/// Counts the sealed secrets of each key.
struct CountSealedSecrets: Statement {
    struct Row: Sendable {
        /// The format and the key's id.
        let header: [UInt8]
        let count: Int64
    }

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT substring(f.sealed_secret FROM 1 FOR 5), count(*) FROM saltern.second_factors f GROUP BY 1 ORDER BY 1
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

/// Finds sealed secrets of other keys than the active one, in the order of accounts behind `after`.
struct FindOutdatedSecrets: Statement {
    let after: AccountID
    /// The first bytes of values sealed with the active key.
    let activeHeader: [UInt8]
    let limit: Int64

    struct Row: Sendable {
        let accountID: AccountID
        let sealedSecret: [UInt8]
    }

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT f.account_id, f.sealed_secret FROM saltern.second_factors f
        WHERE f.account_id > \(\.after) AND substring(f.sealed_secret FROM 1 FOR 5) <> \(\.activeHeader)
        ORDER BY f.account_id LIMIT \(\.limit)
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

/// Reads the installation's sealed pairwise key. Returns no row if there is none.
struct FindSealedPairwiseKey: Statement {
    typealias Row = [UInt8]

    static let isReadOnly = true
    static let sql: SQL<Self> =
        "SELECT pairwise_key FROM saltern.installation WHERE singleton AND pairwise_key IS NOT NULL"
}

/// Replaces the sealed form of the pairwise key. Returns no row if it has changed meanwhile.
struct ReplaceSealedPairwiseKey: Statement {
    typealias Row = Bool

    let old: [UInt8]
    let new: [UInt8]

    static let sql: SQL<Self> = """
        UPDATE saltern.installation SET pairwise_key = \(\.new) WHERE singleton AND pairwise_key = \(\.old)
        RETURNING singleton
        """
}

/// Replaces a secret by its resealed form. Returns no row if it has changed meanwhile.
struct ReplaceSealedSecret: Statement {
    typealias Row = AccountID

    let accountID: AccountID
    let old: [UInt8]
    let new: [UInt8]

    static let sql: SQL<Self> = """
        UPDATE saltern.second_factors f SET sealed_secret = \(\.new)
        WHERE f.account_id = \(\.accountID) AND f.sealed_secret = \(\.old)
        RETURNING f.account_id
        """
}

/// The statements of the master key.
extension StatementList {
    static var masterKey: [any Statement.Type] {
        [
            CountSealedSecrets.self, FindOutdatedSecrets.self, ReplaceSealedSecret.self, FindSealedPairwiseKey.self,
            ReplaceSealedPairwiseKey.self,
        ]
    }
}

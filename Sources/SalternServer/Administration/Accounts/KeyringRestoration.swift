internal import HTTPCore
public import Postgres

extension AccountAdministration {
    /// The result of a restored keyring.
    public struct RestoredKeyring: Sendable, Equatable {
        public let accountID: AccountID
        /// The revision of the kept keyring.
        public let revision: Int64
        /// The revision of the account's keyring after the restore.
        public let newRevision: Int64
    }

    /// Replaces the keyring by a kept one, together with the recovery keyring kept with it. The replaced ones are kept
    /// as well, and all others stay.
    ///
    /// - Parameter revision: The revision of the kept keyring. Nil if there is only one.
    /// - Throws: ``AccountRefusal``, ``KeyringRestorationRefusal`` or a `PostgresError`.
    public func restoreKeyring(
        of reference: AccountReference, revision: Int64?, by signature: AuditSignature
    ) async throws -> RestoredKeyring {
        try await reference.act(in: database) { transaction, account in
            let now = signature.now
            let all = try await transaction.execute(Owned(accountID: account, read: FindKeptKeyrings(now: now)))
            let kept = try KeyringRestorationRefusal.choice(of: revision, among: all)
            guard let keyring = kept.keyring,
                let replaced = try await transaction.replaceableKeyrings(of: account, now: now)
            else { throw KeyringRestorationRefusal.none }
            try await transaction.keep(replaced, inPlaceOf: kept, of: account, now: now)
            let moved = try await transaction.execute(RestoreKeyring(accountID: account, keyring: keyring))
            guard let newRevision = moved.first else { throw reference.unknown }
            if let recoveryKeyring = kept.recoveryKeyring {
                _ = try await transaction.execute(
                    RestoreRecoveryKeyring(accountID: account, keyring: recoveryKeyring))
            }
            try await transaction.note(
                RecordSecurityEvent(accountID: account, kind: .keyringRestored, now: now))
            try await transaction.record(
                AppendAudit(
                    signature, .keyringRestored, account, detail: "revision \(kept.revision) as \(newRevision)"))
            return RestoredKeyring(accountID: account, revision: kept.revision, newRevision: newRevision)
        }
    }
}

/// Reasons to reject a restore of a keyring.
public enum KeyringRestorationRefusal: Error, Equatable, CustomStringConvertible {
    /// No keyring is kept.
    case none
    /// None with this revision is kept.
    case noSuchRevision(among: [Kept])
    /// Several are kept, and the request names no revision.
    case several([Kept])

    /// A keyring that could be restored.
    public struct Kept: Sendable, Equatable {
        public let revision: Int64
        public let replacedAt: Timestamp
        /// True if the request that replaced it contained the password key.
        public let isProven: Bool
    }

    public var description: String {
        switch self {
        case .none: "the account has no kept keyring"
        case .noSuchRevision(let kept): "no keyring with this revision is kept; \(Self.list(kept))"
        case .several(let kept): "several keyrings are kept: name one with --revision; \(Self.list(kept))"
        }
    }

    private static func list(_ kept: [Kept]) -> String {
        kept.map {
            let moment = UTCTimestamp(microsecondsSinceEpoch: $0.replacedAt.unixMicroseconds)
            return "revision \($0.revision) was replaced at \(moment) with\($0.isProven ? "" : "out") the password key"
        }.joined(separator: "; ")
    }

    static func choice(of revision: Int64?, among all: [KeptKeyring]) throws(Self) -> KeptKeyring {
        let kept = all.filter { $0.keyring != nil }
        let named = kept.map { Kept(revision: $0.revision, replacedAt: $0.replacedAt, isProven: $0.isProven) }
        guard let first = kept.first else { throw .none }
        guard let revision else {
            if kept.count > 1 { throw .several(named) }
            return first
        }
        guard let found = kept.first(where: { $0.revision == revision }) else { throw .noSuchRevision(among: named) }
        return found
    }
}

/// Replaces the present keyring by a kept one, with the next revision. The account's row must be locked.
struct RestoreKeyring: Statement {
    typealias Row = Int64

    let accountID: AccountID
    let keyring: [UInt8]

    static let sql: SQL<Self> = """
        UPDATE saltern.accounts a
        SET keyring = \(\.keyring), keyring_revision = \(AccountCounter.next("a.keyring_revision"))
        WHERE a.account_id = \(\.accountID)
        RETURNING a.keyring_revision
        """
}

/// Restores the recovery keyring. The account's row must be locked.
struct RestoreRecoveryKeyring: Statement {
    let accountID: AccountID
    let keyring: [UInt8]

    static let sql: SQL<Self> =
        "UPDATE saltern.recoveries r SET keyring = \(\.keyring) WHERE r.account_id = \(\.accountID)"
}

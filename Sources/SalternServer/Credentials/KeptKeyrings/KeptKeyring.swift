internal import HTTPCore
internal import Postgres

/// An account's keyring and recovery keyring from before a request replaced them.
struct KeptKeyring: Sendable {
    let id: KeptKeyringID
    /// Nil if the account had none.
    let keyring: [UInt8]?
    /// The revision of ``keyring``, 0 without one.
    let revision: Int64
    /// The recovery keyring. Nil without one, and after the recovery code was replaced.
    let recoveryKeyring: [UInt8]?
    /// True if the request that replaced them had the password key. What a restore replaces inherits the restored one's
    /// value.
    let isProven: Bool
    let replacedAt: Timestamp
    /// The time of its removal.
    let expiresAt: Timestamp

    /// The limit of keyrings that were replaced without the password key. Further ones are not kept, so that a stolen
    /// session cannot displace an earlier one.
    static let unprovenLimit: Int64 = 4
    /// The minimum retention in days. Plans with a higher `deletedDays` use that.
    static let shortestRetention: Int32 = 30

    /// Writes its members in a list.
    func write(to writer: inout JSONWriter) {
        if let keyring {
            writer.member("keyring", base64: keyring)
            writer.member("revision", revision)
        }
        if let recoveryKeyring { writer.member("recoveryKeyring", base64: recoveryKeyring) }
        writer.member("withPasswordKey", isProven)
        writer.member("replacedAt", replacedAt)
        writer.member("expiresAt", expiresAt)
    }
}

/// Identifies a kept keyring.
typealias KeptKeyringID = Identifier<KeptKeyring>

/// The keyrings that a request is about to replace.
struct ReplaceableKeyrings: Sendable {
    /// Nil if the account has none.
    let keyring: [UInt8]?
    let revision: Int64
    /// The recovery keyring. Nil without one.
    let recoveryKeyring: [UInt8]?
    /// The plan's retention of deleted items in days.
    let deletedDays: Int32
    /// The number of kept keyrings that were replaced without the password key.
    let unprovenCount: Int64
}

extension Transaction {
    /// Returns the keyrings that a request is about to replace. The account's row must be locked.
    func replaceableKeyrings(
        of accountID: AccountID, now: Timestamp
    ) async throws(PostgresError) -> ReplaceableKeyrings? {
        try await execute(Owned(accountID: accountID, read: FindReplaceableKeyrings(now: now))).first
    }

    /// Keeps the replaced keyrings, unless ``KeptKeyring/unprovenLimit`` are kept already. The latest one that was
    /// replaced with the password key has a slot of its own.
    func keep(
        _ replaced: ReplaceableKeyrings, of accountID: AccountID, isProven: Bool, now: Timestamp
    ) async throws(PostgresError) {
        guard isProven || replaced.unprovenCount < KeptKeyring.unprovenLimit,
            let kept = replaced.kept(isProven: isProven, now: now)
        else { return }
        _ = try await execute(
            DropKeptKeyrings(accountID: accountID, now: now, dropsProven: isProven),
            InsertKeptKeyring(accountID: accountID, kept: kept))
    }

    /// Keeps the replaced keyrings in the slot of a restored one. All others stay, so another one can be restored
    /// later.
    func keep(
        _ replaced: ReplaceableKeyrings, inPlaceOf restored: KeptKeyring, of accountID: AccountID, now: Timestamp
    ) async throws(PostgresError) {
        _ = try await execute(RemoveKeptKeyring(accountID: accountID, id: restored.id))
        guard let kept = replaced.kept(isProven: restored.isProven, now: now) else { return }
        _ = try await execute(InsertKeptKeyring(accountID: accountID, kept: kept))
    }
}

extension ReplaceableKeyrings {
    /// Returns the form to keep. Nil if there is nothing to keep.
    fileprivate func kept(isProven: Bool, now: Timestamp) -> KeptKeyring? {
        guard keyring != nil || recoveryKeyring != nil else { return nil }
        let days = max(deletedDays, KeptKeyring.shortestRetention)
        return KeptKeyring(
            id: .random(), keyring: keyring, revision: revision, recoveryKeyring: recoveryKeyring, isProven: isProven,
            replacedAt: now, expiresAt: now + .seconds(86_400 * Int64(days)))
    }
}

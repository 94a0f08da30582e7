internal import HTTPCore
internal import Postgres

/// An account's keyring and what the recovery code opened, as they were before a request replaced them.
struct KeptKeyring: Sendable {
    let id: KeptKeyringID
    /// Nil when the account had none.
    let keyring: [UInt8]?
    /// The revision that ``keyring`` had; 0 when there was none.
    let revision: Int64
    /// The keyring that the recovery code opened; nil without one, and after the code was replaced.
    let recoveryKeyring: [UInt8]?
    /// True when the request that replaced them had the password key. What a restored keyring has replaced takes over its value.
    let isProven: Bool
    let replacedAt: Timestamp
    /// It is removed then.
    let expiresAt: Timestamp

    /// The limit of keyrings that were replaced without the password key. Further ones are not kept, so that a stolen session
    /// cannot push out an earlier one.
    static let unprovenLimit: Int64 = 4
    /// The shortest time that one is kept, in days. A plan with more `deletedDays` keeps it for as long as those.
    static let shortestRetention: Int32 = 30

    /// Writes the members of one in a list.
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

/// Names a kept keyring.
typealias KeptKeyringID = Identifier<KeptKeyring>

/// What a request is about to replace.
struct ReplaceableKeyrings: Sendable {
    /// Nil when the account has none.
    let keyring: [UInt8]?
    let revision: Int64
    /// What the recovery code opens; nil when there is none.
    let recoveryKeyring: [UInt8]?
    /// The account's plan keeps deleted items for as many days.
    let deletedDays: Int32
    /// How many keyrings are kept that were replaced without the password key.
    let unprovenCount: Int64
}

extension Transaction {
    /// Returns what a request is about to replace. The account's row was locked before.
    func replaceableKeyrings(
        of accountID: AccountID, now: Timestamp
    ) async throws(PostgresError) -> ReplaceableKeyrings? {
        try await execute(Owned(accountID: accountID, read: FindReplaceableKeyrings(now: now))).first
    }

    /// Keeps what was replaced, unless ``KeptKeyring/unprovenLimit`` are kept already. The one that was replaced last with the
    /// password key has a place of its own.
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

    /// Keeps what was replaced in the place of a kept keyring that was restored. All others stay, so that another one can be
    /// restored after it.
    func keep(
        _ replaced: ReplaceableKeyrings, inPlaceOf restored: KeptKeyring, of accountID: AccountID, now: Timestamp
    ) async throws(PostgresError) {
        _ = try await execute(RemoveKeptKeyring(accountID: accountID, id: restored.id))
        guard let kept = replaced.kept(isProven: restored.isProven, now: now) else { return }
        _ = try await execute(InsertKeptKeyring(accountID: accountID, kept: kept))
    }
}

extension ReplaceableKeyrings {
    /// Returns what is kept of them; nil when there is nothing to keep.
    fileprivate func kept(isProven: Bool, now: Timestamp) -> KeptKeyring? {
        guard keyring != nil || recoveryKeyring != nil else { return nil }
        let days = max(deletedDays, KeptKeyring.shortestRetention)
        return KeptKeyring(
            id: .random(), keyring: keyring, revision: revision, recoveryKeyring: recoveryKeyring, isProven: isProven,
            replacedAt: now, expiresAt: now + .seconds(86_400 * Int64(days)))
    }
}

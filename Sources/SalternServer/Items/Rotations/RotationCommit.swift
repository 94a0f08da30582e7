internal import HTTPCore
internal import Postgres

/// The steps of a commit, in a transaction that holds the account's row `FOR UPDATE`.
///
/// Items are replaced in slices, and kept contents expire in slices, so no statement approaches its time limit. All
/// slices are in one transaction.
struct RotationCommit: Sendable {
    let id: RotationID
    let proven: ProvenCaller
    let new: NewCredential
    private let attempts: Attempts

    init(id: RotationID, by proven: ProvenCaller, to new: NewCredential, _ attempts: Attempts) {
        self.id = id
        self.proven = proven
        self.new = new
        self.attempts = attempts
    }

    /// The result of a commit.
    struct Outcome: Sendable {
        /// The number of replaced items.
        let items: Int64
        /// The number of staged items whose items were deleted meanwhile.
        let dropped: Int64
        /// The account's revision.
        let revision: Int64
        let credential: CredentialChange.Outcome
    }

    private var accountID: AccountID { proven.accountID }

    /// Applies the commit. After an error the transaction must be rolled back.
    ///
    /// - Throws: 404, ``RotationProblem``, ``CredentialProblem``, ``WrongCurrentKey``, or a `PostgresError`.
    func apply(_ transaction: Transaction) async throws -> Outcome {
        let find = FindRotation(id: id, now: proven.now)
        guard let rotation = try await transaction.execute(Owned(accountID: accountID, read: find)).first else {
            throw Problem.notFound
        }
        if rotation.isCommitted {
            guard new.verifier == proven.verifier else { throw RotationProblem.committed }
            let holders = try await transaction.execute(Owned(accountID: accountID, read: FindKeyHolders())).first
            return Outcome(
                items: rotation.items, dropped: 0, revision: rotation.revision,
                credential: CredentialChange.Outcome(
                    sessionsEnded: 0, keyringRevision: rotation.keyringRevision,
                    hasRecovery: holders?.hasRecovery ?? false, device: proven.device))
        }
        // The new key is in place, but not through this rotation.
        if proven.hasBeenReplaced { throw WrongCurrentKey() }
        // Checked before the work.
        try await new.requireKeyHolders(of: accountID, changesKeys: true, transaction)
        try await refuseUnready(transaction)
        let (items, dropped, revision) = try await swapItems(transaction)
        try await transaction.expireKept(of: accountID)
        _ = try await transaction.execute(
            CloseRotation(
                accountID: accountID, id: id, now: proven.now, expiresAt: proven.now + Rotation.lifetime, items: items))
        let change = CredentialChange(by: proven, to: new, event: .rotationCommitted, attempts)
        let credential = try await change.apply(transaction)
        return Outcome(items: items, dropped: dropped, revision: revision, credential: credential)
    }

    private func refuseUnready(_ transaction: Transaction) async throws {
        let (_, unready) = try await transaction.execute(
            JoinWholeSets(), FindUnready(accountID: accountID, rotationID: id))
        guard unready.isEmpty else {
            throw RotationProblem.incomplete(
                missing: unready.filter { !$0.isStaged }.map(\.id), changed: unready.filter(\.isStaged).map(\.id))
        }
    }

    private func swapItems(
        _ transaction: Transaction
    ) async throws -> (items: Int64, dropped: Int64, revision: Int64) {
        let taking = TakeRevisions(accountID: accountID, rotationID: id)
        guard let taken = try await transaction.execute(taking).first else { throw Unauthenticated() }
        var next = taken.revision - taken.items
        var dropped: Int64 = 0
        while true {
            let swap = SwapItems(accountID: accountID, rotationID: id, revision: next, now: proven.now)
            guard let slice = try await transaction.execute(swap).first, slice.taken > 0 else { break }
            next += slice.swapped
            dropped += slice.taken - slice.swapped
        }
        // Each item has the revision that was taken for it. Otherwise the transaction is rolled back.
        guard next == taken.revision else { throw Problem.internalError }
        return (taken.items, dropped, taken.revision)
    }
}

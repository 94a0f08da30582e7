internal import HTTPCore
internal import Postgres

/// The new credential in a request: password key, iterations and, if the keyring was sealed under the old key, the
/// resealed keyring.
struct NewCredential: Sendable {
    let verifier: Verifier
    let iterations: Int32
    let keyring: Keyring?
    /// The revision of the resealed keyring, 0 for none. Nil if the request does not name it.
    let keyringRevision: Int64?
    /// The change of the recovery.
    let recovery: RecoveryChange
    /// The unlock key sealed again for passkeys.
    let passkeyBoxes: PasskeyBoxes

    /// Reads `passwordKey`, `kdf`, `keyring`, `keyringRevision`, `recoveryKeyring`, `removeRecovery` and
    /// `passkeyBoxes`.
    init(_ members: inout JSONMembers, _ kdf: KDFPolicy) throws {
        verifier = try members.required("passwordKey", PasswordKey.init(json:)).verifier
        iterations = try members.object("kdf") { try $0.required("iterations", kdf.newIterations(json:)) }
        keyring = try members.optional("keyring", Keyring.init(json:))
        keyringRevision = try members.optional("keyringRevision") { Int64(try $0.integer(in: 0...Int.max)) }
        guard keyring != nil || keyringRevision == nil else { throw CredentialProblem.keyringMissing }
        recovery = try RecoveryChange(&members)
        passkeyBoxes = try PasskeyBoxes(&members)
    }

    /// Checks that the request covers the keyring if the account has one: otherwise it would stay sealed under the old
    /// password, or overwrite another device's change. Also checks the recovery if keys change.
    ///
    /// - Parameter changesKeys: True if keys change even without a keyring.
    /// - Returns: True if the account has a recovery.
    /// - Throws: ``CredentialProblem/keyringRequired``, ``CredentialProblem/keyringChanged``,
    ///   ``RecoveryProblem/keyringRequired``, ``PasskeyProblem/boxesRequired(_:)``, or a `PostgresError`.
    @discardableResult
    func requireKeyHolders(
        of accountID: AccountID, changesKeys: Bool, _ transaction: Transaction
    ) async throws -> Bool {
        let found = try await transaction.execute(Owned(accountID: accountID, read: FindKeyHolders())).first
        if keyring == nil || keyringRevision == nil, let revision = found?.keyringRevision {
            throw CredentialProblem.keyringRequired(present: revision)
        }
        // Before the boxes: a client may remove those of passkeys that the present keyring does not have.
        if let present = found?.keyringRevision, keyringRevision != present { throw CredentialProblem.keyringChanged }
        let hasRecovery = found?.hasRecovery ?? false
        if hasRecovery, !recovery.isSpecified, changesKeys || keyring != nil { throw RecoveryProblem.keyringRequired }
        try passkeyBoxes.check(cover: found?.unlockingPasskeys ?? [])
        return hasRecovery
    }

    /// Returns true if the account has the keyring of the request, or the request has none.
    func isStored(in found: FindKeyring.Row?) -> Bool { keyring == nil || keyring?.bytes == found?.keyring }

    /// Checks that the key may replace the stored one.
    ///
    /// - Throws: ``CredentialProblem``.
    func check(follows stored: Verifier, iterations storedIterations: Int32) throws(CredentialProblem) {
        guard iterations >= storedIterations else { throw .iterationsLowered(present: storedIterations) }
        // Password, salt and iterations determine a key. The same key with other parameters would lock the user out.
        guard verifier != stored || iterations == storedIterations else { throw .keyUnchanged }
    }
}

/// Reasons to reject a change of the credential.
enum CredentialProblem: ProblemConvertible {
    /// The account's iterations are higher.
    case iterationsLowered(present: Int32)
    /// The key is the present one, although iterations or userid differ.
    case keyUnchanged
    /// The request has a keyring's revision without a keyring.
    case keyringMissing
    /// The account has a keyring that the request does not cover.
    case keyringRequired(present: Int64)
    /// The keyring has changed since the client read the one that it resealed.
    case keyringChanged
    /// The new userid is the present one.
    case useridUnchanged

    var problem: Problem {
        switch self {
        case .iterationsLowered(let present):
            Problem(
                .unprocessableContent, "iterations_lowered",
                detail: "`kdf.iterations` must not be lower than the present number.",
                field: "kdf.iterations", limit: Int(present))
        case .keyUnchanged:
            Problem(
                .unprocessableContent, "key_unchanged",
                detail: "`passwordKey` is the present one. Derive it again with the new userid or iterations.",
                field: "passwordKey")
        case .keyringMissing:
            Problem(
                .unprocessableContent, "missing_member",
                detail: "`keyringRevision` needs `keyring`. Send both or neither.",
                field: "keyring")
        case .keyringRequired(let present):
            Problem(
                .preconditionRequired, "keyring_required",
                detail:
                    "The account has a keyring. Send `keyring`, sealed again, and the `keyringRevision` that it replaces.",
                field: "keyringRevision", members: [(name: "revision", value: .integer(present))])
        case .keyringChanged:
            Problem(
                .conflict, "keyring_changed",
                detail:
                    "The keyring has changed. Get it, seal it again and send the request again. Nothing was changed.",
                field: "keyringRevision")
        case .useridUnchanged:
            Problem(
                .unprocessableContent, "userid_unchanged",
                detail: "The account already has this userid. Change only the key with POST /v1/account/credential.",
                field: "userid")
        }
    }
}

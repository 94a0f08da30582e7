internal import HTTPCore
internal import Postgres

/// What an account's credential shall become, as a request's body says: a new password key, its iterations and, when
/// the keyring was sealed under the old key, the keyring sealed anew.
struct NewCredential: Sendable {
    let verifier: Verifier
    let iterations: Int32
    let keyring: Keyring?
    /// The revision of the keyring that was sealed anew, 0 for none; nil when the client does not say.
    let keyringRevision: Int64?
    /// What becomes of the recovery.
    let recovery: RecoveryChange

    /// Takes `passwordKey`, `kdf`, `keyring`, `keyringRevision`, `recoveryKeyring` and `removeRecovery`.
    init(_ members: inout JSONMembers, _ kdf: KDFPolicy) throws {
        verifier = try members.required("passwordKey", PasswordKey.init(json:)).verifier
        iterations = try members.object("kdf") { try $0.required("iterations", kdf.newIterations(json:)) }
        keyring = try members.optional("keyring", Keyring.init(json:))
        keyringRevision = try members.optional("keyringRevision") { Int64(try $0.integer(in: 0...Int.max)) }
        guard keyring != nil || keyringRevision == nil else { throw CredentialProblem.keyringMissing }
        recovery = try RecoveryChange(&members)
    }

    /// Checks that the request says what becomes of the keyring, when the account has one: it would stay under the old
    /// password, or overwrite what another device has put there. And of the recovery, when keys change with it.
    /// - Parameter changesKeys: Whether they do even without a keyring.
    /// - Returns: Whether there is a recovery.
    /// - Throws: ``CredentialProblem/keyringRequired``, ``RecoveryProblem/keyringRequired``, or a `PostgresError`.
    @discardableResult
    func requireKeyHolders(
        of accountID: AccountID, changesKeys: Bool, _ transaction: Transaction
    ) async throws -> Bool {
        let found = try await transaction.execute(Owned(accountID: accountID, read: FindKeyHolders())).first
        if keyring == nil || keyringRevision == nil, let revision = found?.keyringRevision {
            throw CredentialProblem.keyringRequired(present: revision)
        }
        let hasRecovery = found?.hasRecovery ?? false
        if hasRecovery, !recovery.isSpecified, changesKeys || keyring != nil { throw RecoveryProblem.keyringRequired }
        return hasRecovery
    }

    /// Whether the account has the keyring that the request carries, if it carries one.
    func isStored(in found: FindKeyring.Row?) -> Bool { keyring == nil || keyring?.bytes == found?.keyring }

    /// Checks that the key may follow the stored one.
    /// - Throws: ``CredentialProblem``.
    func check(follows stored: Verifier, iterations storedIterations: Int32) throws(CredentialProblem) {
        guard iterations >= storedIterations else { throw .iterationsLowered(present: storedIterations) }
        // A key follows from password, salt and iterations: the same one with anything else would lock the person out.
        guard verifier != stored || iterations == storedIterations else { throw .keyUnchanged }
    }
}

/// Why a credential was not changed.
enum CredentialProblem: ProblemConvertible {
    /// The account has more iterations now.
    case iterationsLowered(present: Int32)
    /// The key is the present one, while iterations or userid are others.
    case keyUnchanged
    /// There is a revision of a keyring, and no keyring.
    case keyringMissing
    /// The account has a keyring, and the request does not say what becomes of it.
    case keyringRequired(present: Int64)
    /// The keyring was changed after the client read the one that it sealed anew.
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

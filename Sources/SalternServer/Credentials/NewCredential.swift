internal import HTTPCore

/// What an account's credential shall become, as a request's body says: a new password key, its iterations and, when
/// the keyring was sealed under the old key, the keyring sealed anew.
struct NewCredential: Sendable {
    let verifier: Verifier
    let iterations: Int32
    let keyring: Keyring?
    /// The revision of the keyring that was sealed anew, 0 for none; nil when the client does not say.
    let keyringRevision: Int64?

    /// Takes `passwordKey`, `kdf`, `keyring` and `keyringRevision`.
    init(_ members: inout JSONMembers, _ kdf: KDFPolicy) throws {
        verifier = try members.required("passwordKey", PasswordKey.init(json:)).verifier
        iterations = try members.object("kdf") { try $0.required("iterations", kdf.newIterations(json:)) }
        keyring = try members.optional("keyring", Keyring.init(json:))
        keyringRevision = try members.optional("keyringRevision") { Int64(try $0.integer(in: 0...Int.max)) }
        guard keyring != nil || keyringRevision == nil else { throw CredentialProblem.keyringMissing }
    }

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
    /// The keyring was changed after the client read the one that it sealed anew.
    case keyringChanged
    /// The new userid is the present one.
    case useridUnchanged

    var problem: Problem {
        switch self {
        case .iterationsLowered(let present):
            Problem(
                .unprocessableContent, "iterations_lowered", detail: "The iterations of an account can only rise.",
                field: "kdf.iterations", limit: Int(present))
        case .keyUnchanged:
            Problem(
                .unprocessableContent, "key_unchanged",
                detail: "Another userid or number of iterations makes another key. This is the present one.",
                field: "passwordKey")
        case .keyringMissing:
            Problem(
                .unprocessableContent, "missing_member", detail: "A revision of the keyring needs the keyring.",
                field: "keyring")
        case .keyringChanged:
            Problem(
                .conflict, "keyring_changed",
                detail: "The keyring was changed meanwhile. Nothing was done. Get it, seal it anew and try again.",
                field: "keyringRevision")
        case .useridUnchanged:
            Problem(
                .unprocessableContent, "userid_unchanged",
                detail: "The account has this userid already. A new key alone is a change of the credential.",
                field: "userid")
        }
    }
}

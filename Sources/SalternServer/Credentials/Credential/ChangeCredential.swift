internal import HTTPCore
internal import Postgres

/// `PUT /v1/account/credential`: replaces the password key, with at least as many iterations, and the resealed keyring.
///
/// An assertion of a passkey can replace the present key. The other sessions end. A restricted session of a recovery
/// requires no present key. All sessions then end, including the caller's, and the user logs in with the new key.
struct ChangeCredential: AccountEndpoint {
    private let kdf: KDFPolicy
    private let attempts: Attempts
    private let proofs: ProofReader

    init(_ parts: Dependencies) {
        kdf = parts.configuration.kdf
        proofs = ProofReader(parts, for: .changeCredential)
        attempts = parts.attempts
    }

    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let (proof, new) = try proofs.read(request) { members in try NewCredential(&members, kdf) }
        guard let proof else {
            return reply(try await changeRestricted(new, authorization), new, endsSession: true)
        }
        let outcome = try await authorization.replaceKey(proof, by: new) { transaction, proven in
            if let done = try await new.outcomeOfRetry(by: proven, transaction) { return done }
            return try await CredentialChange(by: proven, to: new, attempts).apply(transaction)
        }
        return reply(outcome, new, endsSession: false)
    }

    private func changeRestricted(
        _ new: NewCredential, _ authorization: Authorization
    ) async throws -> CredentialChange.Outcome {
        do {
            return try await authorization.changeRestricted { transaction, caller in
                try new.check(follows: caller.verifier, iterations: caller.kdfIterations)
                return try await CredentialChange(by: caller, to: new, attempts).apply(transaction)
            }
        } catch let error as Unauthenticated {
            // The session has ended, possibly by this same request, whose reply was lost.
            guard let done = try await authorization.outcomeOfRestrictedRetry(new) else { throw error }
            return done
        }
    }

    private func reply(
        _ outcome: CredentialChange.Outcome, _ new: NewCredential, endsSession: Bool
    ) -> Response {
        .json { writer in
            writer.object { writer in outcome.write(new, endsSession: endsSession, attempts.devices, to: &writer) }
        }
    }
}

extension CredentialChange.Outcome {
    /// Writes the members of the reply.
    func write(_ new: NewCredential, endsSession: Bool, _ devices: DeviceTokens, to writer: inout JSONWriter) {
        writer.object("kdf") { writer in writer.member("iterations", Int(new.iterations)) }
        writer.member("sessionsEnded", sessionsEnded)
        writer.member("currentSessionEnded", endsSession)
        if let keyringRevision { writer.member("keyringRevision", keyringRevision) }
        RecoveryChange.write(isSet: hasRecovery, to: &writer)
        devices.write(device, to: &writer)
    }
}

extension Authorization {
    /// Changes the credential of a caller with the present key, the one that the new key has already replaced, or an
    /// assertion of a passkey.
    ///
    /// If the credential changes between proof and change, the proof is repeated once: the same request may have been
    /// sent twice.
    ///
    /// - Throws: ``CredentialProblem`` if the new credential must not follow the present one; also the errors of
    ///   ``prove(_:replacement:)`` and ``change(as:use:_:)``.
    func replaceKey<Result>(
        _ proof: CallerProof, by new: NewCredential, use: LeaseUse = .short,
        _ body: (Transaction, ProvenCaller) async throws -> Result
    ) async throws -> Result {
        for isLast in [false, true] {
            let proven = try await prove(proof, replacement: new.verifier)
            try new.check(follows: proven.verifier, iterations: proven.kdfIterations)
            do {
                return try await change(as: proven, use: use) { try await body($0, proven) }
            } catch let error as WrongCurrentKey {
                if isLast { throw error }
            }
        }
        throw WrongCurrentKey()
    }
}

extension NewCredential {
    /// Returns the outcome of a change that was already made. Nil if there is something to change.
    ///
    /// - Throws: ``CredentialProblem/keyringChanged`` if the key is the new one and the keyring differs, or a
    ///   `PostgresError`.
    func outcomeOfRetry(
        by proven: ProvenCaller, _ transaction: Transaction
    ) async throws -> CredentialChange.Outcome? {
        guard verifier == proven.verifier, iterations == proven.kdfIterations else { return nil }
        let (keyrings, holders) = try await transaction.execute(
            Owned(accountID: proven.accountID, read: FindKeyring()),
            Owned(accountID: proven.accountID, read: FindKeyHolders()))
        if isStored(in: keyrings.first) {
            return CredentialChange.Outcome(
                sessionsEnded: 0, keyringRevision: holders.first?.keyringRevision,
                hasRecovery: holders.first?.hasRecovery ?? false, device: proven.device)
        }
        if proven.hasBeenReplaced { throw CredentialProblem.keyringChanged }
        return nil
    }
}

internal import Cryptography
internal import Foundation

/// A change with a new keyring whose reply has not arrived, so that its outcome is uncertain. It changes the password,
/// the userid or the printed code.
struct UnconfirmedChange: Codable, Sendable {
    /// The state of the server after the change.
    enum Outcome: Codable, Sendable {
        case credential(Credential)
        /// SHA-256 of the code's public key.
        case recoveryCode(digest: Base64Bytes)
    }

    /// The data of a log-in.
    struct Credential: Codable, Sendable {
        let userid: String
        let iterations: Int
        /// The derived password in the format of an earlier version, sealed with the previous one.
        private let sealed: Base64Bytes?

        init(userid: String, iterations: Int) {
            self.userid = userid
            self.iterations = iterations
            sealed = nil
        }

        func storedPassword(under current: KnownPassword) -> KnownPassword? {
            guard let sealed, let secret = try? DeviceSeal(under: current).open(sealed.bytes, .unconfirmedChange),
                secret.count == 64
            else { return nil }
            return StretchedPassword(secret).known
        }
    }

    /// The revision of the keyring that the change replaces. While the server has that revision, the change has not
    /// been applied. With another revision it will never be.
    let replacing: Revision
    let outcome: Outcome
}

extension UnconfirmedChange.Outcome {
    static func recoveryCode(_ keys: RecoveryKeys) -> Self {
        .recoveryCode(digest: Base64Bytes(SHA256.hash(keys.publicKey.bytes).bytes))
    }

    /// Returns true when the keyring, opened by the known password, contains the change.
    func isDone(in keyring: Keyring) -> Bool {
        guard case .recoveryCode(let digest) = self, let recovery = keyring.recovery else { return false }
        return SHA256.hash(recovery.publicKey.bytes).bytes == digest.bytes
    }
}

extension DeviceSeal {
    /// Creates a seal for content that only the password may open, as the keyring.
    init(under password: KnownPassword) {
        key = HKDF.deriveKey(from: password.unlockKey, info: SealingLabels.unconfirmedChange.utf8)
    }

    /// Seals the password that a change sets, with the previous one. Locking the vault locks it, too.
    static func sealed(_ password: KnownPassword, under current: KnownPassword) throws -> SecureBytes {
        SecureBytes(copying: try DeviceSeal(under: current).seal(password.encoded, .unconfirmedChange))
    }
}

/// Changes of the keys whose outcome is uncertain, because their reply was lost.
struct UnconfirmedChanges {
    let session: VaultSession

    /// Records a change that is about to be sent, and whose outcome is then uncertain.
    /// - Parameters:
    ///   - password: The password that it sets, if it sets one.
    ///   - current: The previous password.
    func noteUnconfirmed(
        _ outcome: UnconfirmedChange.Outcome, replacing revision: Revision, password: KnownPassword? = nil,
        under current: KnownPassword? = nil
    ) throws(VaultError) {
        try session.stored {
            let change = UnconfirmedChange(replacing: revision, outcome: outcome)
            let encoded = try [UInt8](JSONEncoder().encode(change))
            try session.store.keepStopped()
            var sealed: SecureBytes?
            if let password, let current { sealed = try DeviceSeal.sealed(password, under: current) }
            try session.deviceSecrets.change([.unconfirmedPassword: sealed]) {
                try session.store.set(.unconfirmedChange, encoded)
            }
        }
    }

    /// Removes the record of a change whose outcome is certain.
    /// - Parameters:
    ///   - isApplied: False when the server has rejected it, or will never apply it.
    ///   - losesCode: True when a printed code was created that was not shown.
    func forgetUnconfirmed(isApplied: Bool = true, losesCode: Bool = false) throws(VaultError) {
        if session.store.isClosed { return }
        try session.stored {
            let hasSecret = try session.store.fact(.unconfirmedPassword) != nil
            let forget = { [store = session.store] in
                if losesCode { try store.note(.recoveryRemoved) }
                if isApplied { try store.keepStopped() } else { try store.takeBackStopped() }
                try store.set(.unconfirmedChange, nil)
            }
            if hasSecret {
                try session.deviceSecrets.change([.unconfirmedPassword: nil], forget)
            } else {
                try session.store.transaction(forget)
            }
        }
    }

    func unconfirmedChange() throws(VaultError) -> UnconfirmedChange? {
        guard let fact = try session.stored({ try session.store.fact(.unconfirmedChange) }) else { return nil }
        guard let change = try? JSONDecoder().decode(UnconfirmedChange.self, from: Data(fact)) else {
            throw .store(.damaged)
        }
        return change
    }

    /// Returns the password that a change sets; nil for a password with which it was not sealed.
    func password(
        of credential: UnconfirmedChange.Credential, under current: KnownPassword
    ) throws(VaultError) -> KnownPassword? {
        if let kept = credential.storedPassword(under: current) { return kept }
        guard let sealed = try session.secret(.unconfirmedPassword)?.withUnsafeBytes({ [UInt8]($0) }),
            let secret = try? DeviceSeal(under: current).open(sealed, .unconfirmedChange)
        else { return nil }
        return KnownPassword(encoded: secret)
    }

    /// Returns the new userid of a change whose outcome is uncertain.
    func unconfirmedUserid() throws(VaultError) -> String? {
        guard case .credential(let credential)? = try unconfirmedChange()?.outcome else { return nil }
        return credential.userid
    }

    /// Sends a change, and determines its outcome when no reply arrives.
    /// - Returns: nil when it was applied, and stored here.
    /// - Throws: The error when it was not applied, or when the outcome is still uncertain: the next call then
    ///   determines it.
    func sendChange<Reply: Sendable>(
        _ send: () async throws(APIError) -> Reply, orFindsDone isDone: () -> Bool
    ) async throws(APIError) -> Reply? {
        var mayBeDone = false
        do throws(APIError) {
            // The server accepts equal bytes again, so a retry after a lost reply is safe.
            return try await session.settings.retries({ () throws(APIError) in
                do throws(APIError) { return try await send() } catch {
                    mayBeDone = mayBeDone || error.mayBeDone
                    throw error
                }
            })
        } catch {
            if mayBeDone {
                try? await settleUnconfirmedChange()
                if isDone() { return nil }
            } else {
                try? forgetUnconfirmed(isApplied: false)
            }
            throw error
        }
    }

    /// Settles an uncertain change before a password is sent to the server. The caller does not hold the vault's lock.
    /// If another call holds it, this one does not wait, because deleting the account would then wait for an
    /// unresponsive server.
    func settleBeforeProof() async throws(VaultError) {
        guard !session.serverLock.isLocked, try unconfirmedChange() != nil else { return }
        await session.serverLock.lock()
        defer { session.serverLock.unlock() }
        try await settleUnconfirmedChange()
    }

    /// Settles changes whose outcome is uncertain, before a round.
    func settleKeys() async throws(VaultError) {
        try await settleUnconfirmedChange()
        try await settleRotation()
        try await session.keys.recheckOlderKeyring()
    }

    /// Determines the outcome of a change without a reply. If it was applied, this device stores it. Otherwise the
    /// keyring is replaced by an equal one, so that a request in transit has no effect.
    func settleUnconfirmedChange() async throws(VaultError) {
        guard let change = try unconfirmedChange() else { return }
        for _ in 0..<3 {
            let opened = try session.open
            let reply = try await session.call { api throws(APIError) in try await api.getKeyring(opened.token) }
            // If the vault has been locked or a new session opened, these keys must not be stored.
            guard let current = session.opened, current.engine === opened.engine else { throw .locked }
            // A reply without a keyring proves nothing.
            guard let reply else { return }
            if let keyring = try? Keyring(sealed: reply.keyring.bytes, openedBy: opened.password) {
                if try session.keys.order(of: keyring, openedBy: opened.password) == .rolledBack {
                    return try session.stored { try session.store.note(.keyringRolledBack) }
                }
                if reply.revision == change.replacing {
                    guard try await replaceByEqual(keyring, reply.revision, opened) else { continue }
                } else {
                    try await session.keys.takeLaterKeyring()
                }
                // The keyring is not sealed with the password of a change that was applied.
                return try forgetUnconfirmed(isApplied: false, losesCode: change.outcome.isDone(in: keyring))
            }
            guard case .credential(let credential) = change.outcome,
                let password = try self.password(of: credential, under: opened.password),
                let keyring = try? Keyring(sealed: reply.keyring.bytes, openedBy: password)
            else { return }
            guard try session.keys.order(of: keyring, openedBy: opened.password) == .later else {
                return try session.stored { try session.store.note(.keyringRolledBack) }
            }
            try session.keys.rememberChange(
                of: opened, credential.userid, credential.iterations, nil, keyring, reply.keyring.bytes,
                reply.revision, password)
            return try forgetUnconfirmed()
        }
        throw .unavailable(.unexpectedReply)
    }

    /// Replaces the keyring by an equal one.
    /// - Returns: True when the change is settled. False when the server's keyring was changed since.
    private func replaceByEqual(
        _ keyring: Keyring, _ revision: Revision, _ opened: VaultSession.Opened
    ) async throws(VaultError) -> Bool {
        let next = try session.keys.numberedForSending(keyring.changed { _ in }, of: opened.userid)
        guard let sealed = try? next.sealed(under: opened.password) else { throw .unreadable }
        let recoveryKeyring = try next.sealedForCode(opened.account)
        let written: Revision
        do throws(APIError) {
            written = try await session.settings.retries({ () throws(APIError) in
                try await session.api.putKeyring(
                    sealed, recoveryKeyring: recoveryKeyring, .revision(revision), opened.token)
            })
        } catch {
            if error.code == .preconditionFailed { return false }
            // A rejected request is rejected again, and syncing must not wait for it.
            if error.isRefusal, error.code != .unauthenticated { return true }
            throw VaultError(error)
        }
        guard let current = session.opened, current.engine === opened.engine else { throw .locked }
        try session.keys.rememberChange(
            of: opened, opened.userid, try session.keys.knownIterations(), nil, next, sealed, written, opened.password)
        return true
    }

    /// Finds out the outcome of an interrupted rotation. Unless the server has committed it, it is discarded, so that a
    /// commit in transit has no effect.
    func settleRotation() async throws(VaultError) {
        guard let id = try session.stored({ try session.store.fact(.rotation) }).flatMap({ RotationID(bytes: $0) })
        else { return }
        let token = try session.open.token
        var isDiscarded = true
        do throws(APIError) {
            try await session.settings.retries({ () throws(APIError) in try await session.api.discardRotation(id, token)
            })
        } catch {
            guard [.notFound, .rotationCommitted].contains(error.code) else { throw VaultError(error) }
            isDiscarded = false
        }
        // Before anything is sent, which would be sealed with the previous key.
        try await session.keys.takeLaterKeyring()
        try session.stored {
            if isDiscarded { try session.store.takeBackStopped() } else { try session.store.keepStopped() }
            try session.store.set(.rotation, nil)
        }
    }
}

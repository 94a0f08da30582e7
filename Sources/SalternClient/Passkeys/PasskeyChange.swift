internal import Cryptography

/// A change of passkeys, with the account's password.
struct PasskeyChange {
    private let session: VaultSession
    private let opened: VaultSession.Opened
    private let proof: SecretBytes

    /// - Throws: ``VaultError/wrongCredentials`` for another password than that of the vault. A passkey that unlocks
    ///   would otherwise get a key that opens nothing.
    init(_ password: Password, _ session: VaultSession) async throws(VaultError) {
        try await session.unconfirmed.settleUnconfirmedChange()
        self.session = session
        opened = try session.open
        proof = try await session.keys.proven(password).passwordKey
    }

    func add(
        _ name: String, unlocks: Bool, _ authenticator: any PasskeyAuthenticator
    ) async throws(VaultError) -> PasskeyDescription {
        let options = try await session.call { api throws(APIError) in
            try await api.beginPasskey(logsIn: unlocks, currentPasswordKey: proof, opened.token)
        }
        try PasskeySite(session.settings.transport).check(options.rp.id)
        guard options.user.id.bytes == opened.account.bytes,
            PasskeyKeys.canBelong(options.excludeCredentials.map(\.id))
        else { throw .unavailable(.unexpectedReply) }
        let registration: PasskeyRegistration
        do throws(PasskeyError) { registration = try await authenticator.create(options) } catch {
            throw .passkey(error)
        }
        // The server accepts an equal request again, so a retry after a lost reply is safe.
        var passkey = try await session.call { api throws(APIError) in
            try await api.confirmPasskey(
                registration, name: name, logsIn: unlocks, currentPasswordKey: proof, opened.token)
        }
        guard unlocks else { return passkey }
        do throws(VaultError) {
            try await letUnlock(passkey.id, of: options.rp.id, authenticator)
        } catch {
            // It would log in and open nothing.
            try? await session.api.removePasskey(passkey.id.bytes, currentPasswordKey: proof, opened.token)
            throw error
        }
        passkey.unlocks = true
        return passkey
    }

    func remove(_ id: Base64URLBytes) async throws(VaultError) {
        try await remove([id])
    }

    /// Removes all passkeys that unlock. A device that was unlocked has their keys from the keyring, and could seal an
    /// unlock key of its own for them.
    static func removeUnlocking(_ password: Password, _ session: VaultSession) async throws(VaultError) {
        await session.serverLock.lock()
        defer { session.serverLock.unlock() }
        let change = try await PasskeyChange(password, session)
        let listed = try await session.serverKeyring.passkeys()
        let known = try await session.serverKeyring.latestKeyring().keyring.passkeys.map { Base64URLBytes($0.id) }
        try await change.remove(Set(known).union(listed.filter(\.unlocks).map(\.id)))
    }

    /// Removes the keys of a passkey and its box.
    func stopUnlocking(_ id: Base64URLBytes) async throws(VaultError) {
        try await removeKeys(of: [id])
        try await session.call { api throws(APIError) in
            try await api.removePasskeyBox(id.bytes, currentPasswordKey: proof, opened.token)
        }
    }

    /// Removes keys from the keyring. This comes first: after an interruption the list still has the passkeys, and no
    /// later unlock key is sealed for them.
    private func removeKeys(of ids: Set<Base64URLBytes>) async throws(VaultError) {
        let sealed = Set(ids.map(\.bytes))
        guard
            try await session.serverKeyring.latestKeyring().keyring.passkeys.contains(where: { sealed.contains($0.id) })
        else {
            return
        }
        _ = try await replaceKeyring { $0.passkeys.removeAll { sealed.contains($0.id) } }
    }

    private func remove(_ ids: Set<Base64URLBytes>) async throws(VaultError) {
        try await removeKeys(of: ids)
        for id in ids {
            try await session.call { api throws(APIError) in
                try await api.removePasskey(id.bytes, currentPasswordKey: proof, opened.token)
            }
        }
    }

    /// Seals the unlock key for a new passkey. Its public half is in the keyring before the server has its box, so that
    /// each device that changes the password can seal another box.
    private func letUnlock(
        _ id: Base64URLBytes, of site: String, _ authenticator: any PasskeyAuthenticator
    ) async throws(VaultError) {
        // Only the output is needed, and no server gets the assertion.
        let options = PasskeyRequestOptions(
            rpId: site, challenge: Base64URLBytes(SecureRandom.bytes(32)),
            allowCredentials: [PasskeyDescriptor(id: id)], userVerification: "required")
        let answer: PasskeyAnswer
        do throws(PasskeyError) {
            answer = try await authenticator.get(options, prf: PasskeyKeys.input)
            guard answer.assertion.id == id else { throw .doesNotUnlock }
        } catch {
            throw .passkey(error)
        }
        let output = try answer.unlockingOutput
        guard let (keys, sealed) = try? PasskeyKeys.new(for: id.bytes, output: output, account: opened.account) else {
            throw .unreadable
        }
        let next = try await replaceKeyring { PasskeyKeys.add(keys, to: &$0.passkeys) }
        guard let box = try? keys.box(of: opened.password.unlockKey, counter: next.counter, account: opened.account)
        else { throw .unreadable }
        try await session.call { api throws(APIError) in
            try await api.putPasskeyBox(
                id.bytes, sealedPrivateKey: sealed, box: box, currentPasswordKey: proof, opened.token)
        }
    }

    /// Changes the keyring on the server, also that of the printed code.
    private func replaceKeyring(
        _ change: (inout Keyring) -> Void
    ) async throws(VaultError) -> Keyring {
        var attempts = 0
        while true {
            attempts += 1
            let (keyring, revision) = try await session.serverKeyring.keyringForSealing()
            let next = try session.keys.numberedForSending(keyring.changed(change), of: opened.userid)
            // The server has the same limit, so it has accepted too many. No device could open this keyring.
            guard next.passkeys.count <= PasskeyKeys.limit else { throw .unavailable(.unexpectedReply) }
            guard let sealed = try? next.sealed(under: opened.password) else { throw .unreadable }
            let recoveryKeyring = try next.sealedForCode(opened.account)
            let written: Revision
            do throws(APIError) {
                written = try await session.settings.retries({ () throws(APIError) in
                    try await session.api.putKeyring(
                        sealed, recoveryKeyring: recoveryKeyring, currentPasswordKey: proof, .revision(revision),
                        opened.token)
                })
            } catch {
                // Another device has changed the keyring.
                if error.code == .preconditionFailed, attempts < 3 { continue }
                throw VaultError(error)
            }
            try session.keys.rememberChange(
                of: opened, opened.userid, try session.keys.knownIterations(), nil, next, sealed, written,
                opened.password)
            return next
        }
    }
}

/// The site of a server. Only its passkeys may answer.
struct PasskeySite {
    /// Nil for a transport that does not name its host.
    private let host: String?

    init(_ transport: any HTTPTransport) { host = transport.host?.lowercased() }

    /// Rejects the name of a site to which the server does not belong. A hostile server could otherwise have the
    /// passkey of another site answer.
    func check(_ site: String) throws(VaultError) {
        // The site becomes a part of JSON that authenticators make.
        guard !site.isEmpty, site.utf8.allSatisfy(Self.isPartOfDomain) else { throw .passkey(.foreignSite) }
        guard let host else { return }
        guard host == site || site.contains(".") && host.hasSuffix("." + site) else { throw .passkey(.foreignSite) }
    }

    private static func isPartOfDomain(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"),
            UInt8(ascii: "."):
            true
        default: false
        }
    }
}

extension PasskeyAnswer {
    /// The output of the pseudo-random function.
    /// - Throws: ``PasskeyError/doesNotUnlock`` without one.
    var unlockingOutput: SecureBytes {
        get throws(VaultError) {
            guard let output = output?.bytes, output.count == PasskeyKeys.outputCount else {
                throw .passkey(.doesNotUnlock)
            }
            return output
        }
    }
}

internal import Cryptography

extension Vault {
    /// Goes on with the keyring that another device has put in the place of the known one, for items sealed with a key that
    /// is not known here.
    func takeLaterKeyring() async throws(VaultError) {
        let opened = try open
        let reply = try await call { api throws(APIError) in try await api.getKeyring(opened.token) }
        // Locked or logged in anew meanwhile: then these keys are not to be kept.
        guard let current = self.opened, current.engine === opened.engine else { throw .locked }
        guard let reply, let keyring = try? Keyring(sealed: reply.keyring.bytes, openedBy: opened.password) else {
            return
        }
        let known = try stored { try store.number(.keyringCounter) } ?? 0
        guard Int64(keyring.counter) > known else {
            try stored {
                if Int64(keyring.counter) < known {
                    try store.note(.keyringRolledBack)
                } else {
                    try store.forgetNotices(.keyringRolledBack)
                }
            }
            return
        }
        let sealer = Sealer(account: opened.account, keyring: keyring)
        let seal = try deviceSeal()
        try stored {
            try store.transaction {
                try keep(sealer, reply.keyring.bytes, reply.revision, opened.password, seal, from: opened.engine.sealer)
            }
        }
        opened.engine.sealer = sealer
    }

    /// Whether the server goes on having an older keyring than is known: somebody may have put the later one back, here or
    /// on another device.
    func lookAtOlderKeyringAgain() async throws(VaultError) {
        if try stored({ try store.notices() }).contains(where: { $0.kind == .keyringRolledBack }) {
            try await takeLaterKeyring()
        }
    }

    /// Puts the keyring that is known here in the place of an older one. It opens what that one opens, too: the server's
    /// items are as old.
    func putKeyringBack(
        over older: Keyring, of login: LoginReply, _ password: StretchedPassword
    ) async throws(VaultError) -> (Keyring, sealed: [UInt8], Revision?) {
        let token = login.session.token
        guard let revision = login.keyringRevision, try knownAccount() == login.accountId,
            let sealer = try storeSealer(login.accountId, password)
        else { throw .keyringUnusable }
        let own = sealer.keyring
        // Whoever knows a password of before would have with it what was sealed since.
        let isNewer = own.dataKeys.contains { key in !older.dataKeys.contains { $0.id == key.id } }
        let known = try stored { try store.fact(.keyring) }
        let isOwn = known.flatMap { try? Keyring(sealed: $0, openedBy: password) } != nil
        guard isOwn || !isNewer else { throw .keyringNotRestorable }
        let account = try await call { api throws(APIError) in try await api.getAccount(token) }
        // The code that the server knows is that of the older keyring. Nothing new is sealed to one that was removed.
        let code = account.recovery.set ? older.recovery?.publicKey.bytes : nil
        let keepsCode = code != nil && code == own.recovery?.publicKey.bytes
        let next = own.opening(also: older).changed { if !keepsCode { $0.recovery = nil } }
        guard let sealed = try? next.sealed(under: password) else { throw .unreadable }
        let recoveryKeyring = try recoveryKeyring(of: next, login.accountId)
        // The same bytes again are a success: only the reply was lost then.
        let written = try await call { api throws(APIError) in
            try await api.putKeyring(
                sealed, recoveryKeyring: recoveryKeyring, removingRecovery: keepsCode ? nil : password.passwordKey,
                .revision(revision), token)
        }
        let hadCode = account.recovery.set || own.recovery != nil || older.recovery != nil
        try stored {
            if hadCode && !keepsCode { try store.note(.recoveryRemoved) }
        }
        return (next, sealed, written)
    }

    /// Notes a keyring, and seals anew what it does not open: in one transaction of the caller, because neither is of use
    /// without the other.
    /// - Parameters:
    ///   - seal: What keeps the keyring open on this device; nil for a vault that is locked.
    ///   - old: What opens the store as it is; nil when there is nothing, or nobody can open it.
    func keep(
        _ sealer: Sealer, _ sealedKeyring: [UInt8], _ revision: Revision?, _ password: StretchedPassword,
        _ seal: DeviceSeal?, from old: Sealer?
    ) throws {
        try store.set(.keyring, sealedKeyring)
        try store.set(.keyringCounter, Int64(sealer.keyring.counter))
        try store.noteKeys(of: sealer.keyring)
        try store.forgetNotices(.keyringRolledBack)
        if let revision { try store.set(.keyringRevision, revision.number) }
        if let seal { try store.set(.openKeyring, seal.seal(Self.secrets(password, sealer.keyring), .openKeyring)) }
        if let old { try store.reseal(from: old, to: sealer) }
    }

    static func secrets(_ password: StretchedPassword, _ keyring: Keyring) -> SecureBytes {
        var secrets = SecretWriter()
        secrets.write(password.passwordKey.bytes)
        secrets.write(password.unlockKey)
        secrets.write(keyring.encoded())
        return secrets.bytes
    }

    /// What is kept open on this device; nil when the vault is locked.
    func keptOpen() throws(VaultError) -> (password: StretchedPassword, keyring: Keyring)? {
        guard let secrets = try secret(.openKeyring) else { return nil }
        var reader = SecretReader(secrets)
        guard let unlock = reader.secret(64), let rest = reader.secret(secrets.count - 64),
            let keyring = try? Keyring(encoded: rest)
        else { throw .store(.damaged) }
        return (StretchedPassword(unlock), keyring)
    }

    /// What opens what is stored here, also when the vault is locked, provided that the password is the same.
    func storeSealer(_ account: AccountID, _ password: StretchedPassword) throws(VaultError) -> Sealer? {
        if let opened { return opened.engine.sealer }
        if let kept = try keptOpen() { return Sealer(account: account, keyring: kept.keyring) }
        guard let sealed = try stored({ try store.fact(.keyring) }),
            let keyring = try? Keyring(sealed: sealed, openedBy: password)
        else { return nil }
        return Sealer(account: account, keyring: keyring)
    }
}

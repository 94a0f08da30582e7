internal import Cryptography

extension Vault {
    /// Fetches and uses a keyring of another device, for items sealed with an unknown key.
    func takeLaterKeyring() async throws(VaultError) {
        let opened = try open
        let reply = try await call { api throws(APIError) in try await api.getKeyring(opened.token) }
        // If the vault has been locked or a new session opened, these keys must not be stored.
        guard let current = self.opened, current.engine === opened.engine else { throw .locked }
        guard let reply, let keyring = try? Keyring(sealed: reply.keyring.bytes, openedBy: opened.password) else {
            return
        }
        switch try order(of: keyring, openedBy: opened.password) {
        case .rolledBack: return try stored { try store.note(.keyringRolledBack) }
        case .same: return try stored { try store.forgetNotices(.keyringRolledBack) }
        case .later: break
        }
        let sealer = Sealer(account: opened.account, keyring: keyring)
        try stored {
            try keep(sealer, reply.keyring.bytes, reply.revision, opened.password, from: opened.engine.sealer)
        }
        opened.engine.sealer = sealer
    }

    /// Checks again for an older keyring on the server: this or another device may have put the later one back.
    func recheckOlderKeyring() async throws(VaultError) {
        if try stored({ try store.notices() }).contains(where: { $0.kind == .keyringRolledBack }) {
            try await takeLaterKeyring()
        }
    }

    /// Replaces an older keyring on the server by the known one. The result also has the older one's keys, because the
    /// server's items are as old.
    func putKeyringBack(
        over older: Keyring, of login: LoginReply, _ userid: String, _ password: StretchedPassword
    ) async throws(VaultError) -> (Keyring, sealed: [UInt8], Revision?) {
        let token = login.session.token
        guard let revision = login.keyringRevision, try knownAccount() == login.accountId,
            let sealer = try storeSealer(login.accountId, password.known)
        else { throw .keyringUnusable }
        let own = sealer.keyring
        // Otherwise an earlier password could open content that was sealed since.
        let isNewer = own.dataKeys.contains { key in !older.dataKeys.contains { $0.id == key.id } }
        let known = try stored { try store.fact(.keyring) }
        let isOwn = known.flatMap { try? Keyring(sealed: $0, openedBy: password) } != nil
        guard isOwn || !isNewer else { throw .keyringNotRestorable }
        let account = try await call { api throws(APIError) in try await api.getAccount(token) }
        // The server's code is that of the older keyring. A removed code gets no new content.
        let code = account.recovery.set ? older.recovery?.publicKey.bytes : nil
        let keepsCode = code != nil && code == own.recovery?.publicKey.bytes
        var restored = own.opening(also: older)
        restored.counter = max(own.counter, older.counter)
        // The same holds for passkeys.
        restored.passkeys = own.passkeys.filter { keys in older.passkeys.contains { $0.isSame(as: keys) } }
        let next = try numberedForSending(restored.changed { if !keepsCode { $0.recovery = nil } }, of: userid)
        guard let sealed = try? next.sealed(under: password) else { throw .unreadable }
        let recoveryKeyring = try next.sealedForCode(login.accountId)
        // The server accepts equal bytes again, so a retry after a lost reply is safe.
        let written = try await call { api throws(APIError) in
            try await api.putKeyring(
                sealed, recoveryKeyring: recoveryKeyring, removingRecovery: keepsCode ? nil : password.passwordKey,
                .revision(revision), token)
        }
        for removed in older.passkeys where !next.passkeys.contains(where: { $0.isSame(as: removed) }) {
            try await call { api throws(APIError) in
                try await api.removePasskey(removed.id, currentPasswordKey: password.passwordKey, token)
            }
        }
        let hadCode = account.recovery.set || own.recovery != nil || older.recovery != nil
        try stored {
            if hadCode && !keepsCode { try store.note(.recoveryRemoved) }
        }
        return (next, sealed, written)
    }

    /// Stores a keyring, and seals content again that it cannot open, in one transaction. Each is useless without the
    /// other. The previous secrets are deleted.
    /// - Parameters:
    ///   - password: Stored with the keyring, so that the vault stays open; nil for a locked vault.
    ///   - secrets: Other secrets that are replaced.
    ///   - old: Opens the present store; nil when it is empty or cannot be opened.
    ///   - body: Further steps of the transaction.
    func keep(
        _ sealer: Sealer, _ sealedKeyring: [UInt8], _ revision: Revision?, _ password: KnownPassword?,
        _ secrets: [StoreFact: SecureBytes?] = [:], from old: Sealer?, _ body: () throws -> Void = {}
    ) throws {
        var secrets = secrets
        secrets.updateValue(nil, forKey: .openKeyring)
        secrets.updateValue(password.map { $0.encoded(with: sealer.keyring) }, forKey: .openKeys)
        try deviceSecrets.change(secrets) {
            try body()
            try store.set(.keyring, sealedKeyring)
            try store.set(.keyringCounter, counter: sealer.keyring.counter)
            try store.set(.keyringDigest, sealer.keyring.digest)
            try store.set(.passkeys, sealer.keyring.passkeys.flatMap(\.digest))
            if let old {
                try store.retireKeys(of: old.keyring, for: sealer.keyring)
                try noteRecoveryCode(of: old.keyring, after: sealer.keyring)
            }
            try store.noteKeys(of: sealer.keyring)
            try store.forgetNotices(.keyringRolledBack)
            if let revision { try store.set(.keyringRevision, revision.number) }
            if let old { try store.reseal(from: old, to: sealer) }
        }
    }

    /// Records a printed code that was not replaced together with the data key, or its replacement.
    private func noteRecoveryCode(of previous: Keyring, after keyring: Keyring) throws {
        let code = keyring.recovery?.publicKey.bytes
        if code == nil || code != previous.recovery?.publicKey.bytes {
            try store.forgetNotices(.recoveryCodeOutdated)
        } else if !previous.dataKeys.contains(keyring.currentKey) {
            try store.note(.recoveryCodeOutdated)
        }
    }

    /// Returns the keys of an open vault on this device; nil when the vault is locked.
    func keptOpen() throws(VaultError) -> (password: KnownPassword, keyring: Keyring)? {
        let current = try secret(.openKeys)
        // An earlier version stored the derived password itself.
        let earlier = current == nil ? try secret(.openKeyring) : nil
        guard let secrets = current ?? earlier else { return nil }
        var reader = SecretReader(secrets)
        guard let first = reader.secret(KnownPassword.byteCount),
            let password = current == nil ? StretchedPassword(first).known : KnownPassword(encoded: first),
            let rest = reader.secret(secrets.count - KnownPassword.byteCount),
            let keyring = try? Keyring(encoded: rest)
        else { return nil }
        return (password, keyring)
    }

    // MARK: Counters

    /// Compares a keyring from the server with the known one.
    func order(of keyring: Keyring, openedBy password: KnownPassword) throws(VaultError) -> KeyringOrder {
        guard let account = try knownAccount() else { return .later }
        return try KeyringOrder.of(
            keyring, counter: try stored { try store.counter(.keyringCounter) },
            isRetired: try stored { try store.isRetired(keyring.currentKey) }
        ) { () throws(VaultError) in
            // A store of an earlier version has no digest.
            if let digest = try stored({ try store.fact(.keyringDigest) }) { return digest }
            return try storeSealer(account, password)?.keyring.digest
        }
    }

    /// Assigns a keyring that is about to be sent a counter that no keyring of this device has had. It is above its own
    /// counter, the known one, and every one that was sent without a confirmation. The counter is on the disk when this
    /// returns. The keyring gets the mark of the userid.
    func numberedForSending(_ keyring: Keyring, of userid: String) throws(VaultError) -> Keyring {
        try stored {
            try store.transaction {
                let used = try max(store.counter(.keyringCounter), store.counter(.keyringSent))
                // The last counter has no successor: only a damaged keyring has it.
                guard used < .max else { throw StoreError.damaged }
                var numbered = keyring
                numbered.counter = max(keyring.counter, used + 1)
                numbered.useridMark = UseridMark(of: userid)
                try store.set(.keyringSent, counter: numbered.counter)
                return numbered
            }
        }
    }

    /// Returns a sealer that opens the store, even of a locked vault if the password is the same.
    func storeSealer(_ account: AccountID, _ password: KnownPassword) throws(VaultError) -> Sealer? {
        if let opened { return opened.engine.sealer }
        if let kept = try keptOpen() { return Sealer(account: account, keyring: kept.keyring) }
        guard let sealed = try stored({ try store.fact(.keyring) }),
            let keyring = try? Keyring(sealed: sealed, openedBy: password)
        else { return nil }
        return Sealer(account: account, keyring: keyring)
    }
}

internal import Cryptography

/// The secrets of a store, sealed with the device key: session token, device token, the keys of an open vault.
///
/// SQLite can keep the bytes of a deleted row in its write-ahead log. Therefore each change generates a new device key,
/// seals the remaining secrets with it, and overwrites the previous key. The old secrets are then unreadable.
///
/// Key store and database cannot change together. The transaction that seals the secrets also stores the new key,
/// sealed with the previous one (``StoreFact/nextDeviceKey``). The new key is then saved in the key store, and the fact
/// is deleted. ``finishChange()`` repeats that second step after an interruption.
struct DeviceSecrets {
    private let store: Store
    private let keys: any DeviceKeyStore

    private static let facts: [StoreFact] = [.token, .deviceToken, .openKeys, .openKeyring, .unconfirmedPassword]

    init(_ store: Store, _ keys: any DeviceKeyStore) {
        self.store = store
        self.keys = keys
    }

    /// Returns a secret; nil when there is none, and when the device key is missing or cannot open it.
    func secret(_ fact: StoreFact) throws -> SecureBytes? {
        guard let sealed = try store.fact(fact), let seal = try seal(under: keys.load()) else { return nil }
        return try? seal.open(sealed, fact)
    }

    /// Replaces secrets in one transaction with `body`, and deletes the previous ones.
    ///
    /// When the key store rejects the new key, the previous secrets can still be opened until ``finishChange()``
    /// succeeds.
    ///
    /// The key is not replaced if it is missing or opens no secret, and no secret is stored. A missing key may return
    /// and open the others.
    /// - Parameter values: The new secrets; nil deletes one. Others stay, except those that the device key cannot open.
    func change(_ values: [StoreFact: SecureBytes?], _ body: () throws -> Void = {}) throws {
        try store.checkOpen()
        let kept = try keys.load()
        let before = try seal(under: kept)
        let storesSecret = values.values.contains { $0 != nil }
        if try !storesSecret && (kept == nil || isForeign(before)) {
            try store.transaction {
                try body()
                for fact in values.keys { try store.set(fact, nil) }
            }
            return store.truncateLog()
        }
        guard let kept else { return try begin(values, body) }
        let key = SecureRandom.secureBytes(32)
        let seal = DeviceSeal(key: key)
        try store.transaction {
            if try isForeign(before) { try store.renewIdentity() }
            try body()
            for fact in Self.facts {
                let secret: SecureBytes?
                if let value = values[fact] {
                    secret = value
                } else {
                    secret = try store.fact(fact).flatMap { sealed in try? before?.open(sealed, fact) }
                }
                try store.set(fact, secret.map { try seal.seal($0, fact) })
            }
            try store.set(.nextDeviceKey, DeviceSeal(key: kept).seal(key, .nextDeviceKey))
            try store.set(.isSignedOut, nil)
        }
        // The transaction has been committed. The next change and the next opening of the store repeat this step.
        try? finishChange()
    }

    /// Stores secrets with the first key, or with a new key that replaces a missing one.
    private func begin(_ values: [StoreFact: SecureBytes?], _ body: () throws -> Void) throws {
        let seal = DeviceSeal(key: SecureRandom.secureBytes(32))
        // A new key opens no earlier secret, so no second step is needed.
        try keys.save(seal.key)
        try store.transaction {
            if try isForeign(nil) { try store.renewIdentity() }
            try body()
            for fact in Self.facts { try store.set(fact, (values[fact] ?? nil).map { try seal.seal($0, fact) }) }
            try store.set(.nextDeviceKey, nil)
            try store.set(.isSignedOut, nil)
        }
        store.truncateLog()
    }

    /// Returns true when there are secrets and none can be opened: the store is a copy from another device, or has lost
    /// its key.
    private func isForeign(_ seal: DeviceSeal?) throws -> Bool {
        let secrets = try Self.facts.compactMap { fact in try store.fact(fact).map { (fact, $0) } }
        return !secrets.isEmpty && !secrets.contains { fact, sealed in (try? seal?.open(sealed, fact)) != nil }
    }

    /// Overwrites the previous device key if the last change is incomplete.
    /// - Throws: The errors of key store and database; the secrets stay readable then.
    func finishChange() throws {
        defer { store.truncateLog() }
        guard let key = try keys.load(), let next = try store.fact(.nextDeviceKey) else { return }
        if let new = try? DeviceSeal(key: key).open(next, .nextDeviceKey) {
            try keys.save(new)
        } else if try isForeign(DeviceSeal(key: key)) {
            // The key that opens it may return.
            return
        }
        try store.set(.nextDeviceKey, nil)
    }

    /// Completes an interrupted change or sign-out, as far as the disk allows.
    func repair() {
        do {
            if try store.fact(.isSignedOut) != nil {
                try finishSignOut()
            } else if try store.fact(.nextDeviceKey) != nil {
                try finishChange()
            }
        } catch {
            // The next opening repeats it.
        }
    }

    /// Removes the key of a store that a sign-out has emptied (``StoreFact/isSignedOut``).
    func finishSignOut() throws {
        store.truncateLog()
        try keys.remove()
        // On a full disk the fact stays, and the next opening removes the key again.
        try? store.set(.isSignedOut, nil)
    }

    /// Returns the valid seal. It has the new key even while the key store still has the previous one.
    private func seal(under key: SecureBytes?) throws -> DeviceSeal? {
        guard let key else { return nil }
        let seal = DeviceSeal(key: key)
        guard let next = try store.fact(.nextDeviceKey), let new = try? seal.open(next, .nextDeviceKey) else {
            return seal
        }
        return DeviceSeal(key: new)
    }
}

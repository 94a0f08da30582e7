internal import Cryptography

/// The secrets of a store, sealed under the device key: session token, device token, the keys of an open vault.
///
/// SQLite can keep the bytes of a deleted row in its write-ahead log. A secret is therefore dropped by replacing the key that
/// sealed it: each change draws a new device key, seals the remaining secrets under it, and overwrites the previous key.
///
/// Key store and database cannot change together. The transaction that seals the secrets also stores the new key, sealed under
/// the previous one (``StoreFact/nextDeviceKey``). The key store then takes the new key, and the fact is deleted.
/// ``finishChange()`` repeats that second step after an interruption.
struct DeviceSecrets {
    private let store: Store
    private let keys: any DeviceKeyStore

    private static let facts: [StoreFact] = [.token, .deviceToken, .openKeys, .openKeyring, .unconfirmedPassword]

    init(_ store: Store, _ keys: any DeviceKeyStore) {
        self.store = store
        self.keys = keys
    }

    /// Returns a secret; nil when there is none, and when the device key is missing or does not open it.
    func secret(_ fact: StoreFact) throws -> SecureBytes? {
        guard let sealed = try store.fact(fact), let seal = try seal(under: keys.load()) else { return nil }
        return try? seal.open(sealed, fact)
    }

    /// Replaces secrets in one transaction with `body`, and drops the previous ones.
    ///
    /// When the key store refuses the new key, the previous secrets can still be opened until ``finishChange()`` succeeds.
    /// - Parameter values: The new secrets; nil drops one. Others stay, except for those that the device key does not open.
    func change(_ values: [StoreFact: SecureBytes?], _ body: () throws -> Void = {}) throws {
        try store.checkOpen()
        let kept = try keys.load()
        let before = try seal(under: kept)
        let key = SecureRandom.secureBytes(32)
        let seal = DeviceSeal(key: key)
        // A new key opens nothing that was stored before, so it needs no second step.
        if kept == nil { try keys.save(key) }
        try store.transaction {
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
            try store.set(.nextDeviceKey, kept.map { try DeviceSeal(key: $0).seal(key, .nextDeviceKey) })
        }
        // The transaction is done either way; the next change and the next opening of the store try again.
        try? finishChange()
    }

    /// Overwrites the device key of before the last change, unless that is done.
    /// - Throws: What the key store or the database throws; the secrets stay readable then.
    func finishChange() throws {
        defer { store.truncateLog() }
        guard let key = try keys.load(), let next = try store.fact(.nextDeviceKey) else { return }
        if let new = try? DeviceSeal(key: key).open(next, .nextDeviceKey) { try keys.save(new) }
        try store.set(.nextDeviceKey, nil)
    }

    /// Completes a change or a sign-out that was interrupted, as far as the disk allows.
    func repair() {
        do {
            if try store.fact(.account) == nil {
                // Nothing that the key opens is in use.
                guard try keys.load() != nil else { return }
                store.truncateLog()
                try keys.remove()
            } else if try store.fact(.nextDeviceKey) != nil {
                try finishChange()
            }
        } catch {
            // The next opening tries again.
        }
    }

    /// Returns the seal in force: the new key's when the key store still has the one of before the last change.
    private func seal(under key: SecureBytes?) throws -> DeviceSeal? {
        guard let key else { return nil }
        let seal = DeviceSeal(key: key)
        guard let next = try store.fact(.nextDeviceKey), let new = try? seal.open(next, .nextDeviceKey) else {
            return seal
        }
        return DeviceSeal(key: new)
    }
}

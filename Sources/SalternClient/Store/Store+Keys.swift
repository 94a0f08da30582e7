internal import Cryptography

extension DataKey {
    /// Recognises the key in a list of retired ones: 16 bytes.
    fileprivate var retirementDigest: [UInt8] {
        HKDF.deriveKey(from: bytes, info: SealingLabels.retiredKey.utf8, byteCount: 16)
            .withUnsafeBytes { [UInt8]($0) }
    }
}

extension Store {
    /// The names of the data keys that the account's keyring was last known to have, the current one last.
    func keyIDs() throws -> [DataKey.ID] {
        let bytes = try fact(.keyIDs) ?? []
        return stride(from: 0, to: bytes.count, by: 4).compactMap { start in
            DataKey.ID(bytes: bytes[start...].prefix(4))
        }
    }

    /// Notes which keys there are. Where something waits for one of those that are new, everything is listed anew.
    func noteKeys(of keyring: Keyring) throws {
        let known = Set(try keyIDs())
        let ids = keyring.dataKeys.map(\.id)
        try set(.keyIDs, ids.flatMap(\.bytes))
        guard try hasUnread(), !known.isSuperset(of: ids) else { return }
        try set(.unread, nil)
        try beginListing()
    }

    /// Notes that keys of the previous keyring are no longer in use.
    func retireKeys(of previous: Keyring, for keyring: Keyring) throws {
        let retired = previous.dataKeys.filter { key in !keyring.dataKeys.contains(key) }.map(\.retirementDigest)
        guard !retired.isEmpty else { return }
        let known = try fact(.retiredKeys) ?? []
        try set(.retiredKeys, known + retired.flatMap(\.self))
    }

    /// Whether a rotation that was seen here has given up the key.
    func isRetired(_ key: DataKey) throws -> Bool {
        let known = try fact(.retiredKeys) ?? []
        let digest = key.retirementDigest
        return stride(from: 0, to: known.count, by: digest.count).contains { known[$0...].starts(with: digest) }
    }

    /// Whether something is here under a key that was not known.
    func hasUnread() throws -> Bool { try fact(.unread) != nil }

    /// The next page is the first one of everything.
    func beginListing() throws {
        try set(.cursor, nil)
        try set(.listing, (number(.listing) ?? 0) + 1)
    }
}

internal import Cryptography

extension DataKey {
    /// A digest of 16 bytes that recognises the key in a list of retired ones.
    fileprivate var retirementDigest: [UInt8] {
        HKDF.deriveKey(from: bytes, info: SealingLabels.retiredKey.utf8, byteCount: 16)
            .withUnsafeBytes { [UInt8]($0) }
    }
}

extension Store {
    /// Returns the ids of the data keys in the account's last confirmed keyring, the current one last.
    func keyIDs() throws -> [DataKey.ID] {
        let bytes = try fact(.keyIDs) ?? []
        return stride(from: 0, to: bytes.count, by: 4).compactMap { start in
            DataKey.ID(bytes: bytes[start...].prefix(4))
        }
    }

    /// Records the data keys. If unread content waits and there are new keys, all items are listed again.
    func noteKeys(of keyring: Keyring) throws {
        let known = Set(try keyIDs())
        let ids = keyring.dataKeys.map(\.id)
        try set(.keyIDs, ids.flatMap(\.bytes))
        guard try hasUnread(), !known.isSuperset(of: ids) else { return }
        try set(.unread, nil)
        try beginListing()
    }

    /// Records that keys of the previous keyring are no longer in use.
    func retireKeys(of previous: Keyring, for keyring: Keyring) throws {
        let retired = previous.dataKeys.filter { key in !keyring.dataKeys.contains(key) }.map(\.retirementDigest)
        guard !retired.isEmpty else { return }
        let known = try fact(.retiredKeys) ?? []
        try set(.retiredKeys, known + retired.flatMap(\.self))
    }

    /// Returns true when a rotation that this device recorded has retired the key.
    func isRetired(_ key: DataKey) throws -> Bool {
        let known = try fact(.retiredKeys) ?? []
        let digest = key.retirementDigest
        return stride(from: 0, to: known.count, by: digest.count).contains { known[$0...].starts(with: digest) }
    }

    /// Returns true when the store has content under an unknown key.
    func hasUnread() throws -> Bool { try fact(.unread) != nil }

    /// Starts a complete listing with the next page.
    func beginListing() throws {
        try set(.cursor, nil)
        try set(.listing, (number(.listing) ?? 0) + 1)
    }
}

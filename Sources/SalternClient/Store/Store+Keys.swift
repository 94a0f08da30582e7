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

    /// Whether something is here under a key that was not known.
    func hasUnread() throws -> Bool { try fact(.unread) != nil }

    /// The next page is the first one of everything.
    func beginListing() throws {
        try set(.cursor, nil)
        try set(.listing, (number(.listing) ?? 0) + 1)
    }
}

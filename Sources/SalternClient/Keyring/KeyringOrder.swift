/// The relation of a keyring to the last confirmed one of this device.
enum KeyringOrder {
    /// The keyring is older, or contradicts the confirmed one: the same counter with other content, or a data key that
    /// a rotation has retired.
    case rolledBack
    case same
    case later

    /// Compares a keyring from the server with the confirmed one. Only the needed one of the last two values is read.
    /// - Parameters:
    ///   - counter: The counter of the confirmed keyring.
    ///   - isRetired: True if a rotation has retired the current data key of `keyring`. Read for a higher counter.
    ///   - digest: The digest of the confirmed keyring; nil for none. Read for an equal counter.
    static func of(
        _ keyring: Keyring, counter: UInt64, isRetired: @autoclosure () throws(VaultError) -> Bool,
        digest: () throws(VaultError) -> [UInt8]?
    ) throws(VaultError) -> KeyringOrder {
        if keyring.counter < counter { return .rolledBack }
        if keyring.counter > counter {
            // It would seal with a key that was retired because it may have been disclosed.
            return try isRetired() ? .rolledBack : .later
        }
        let expected = try digest()
        return expected == nil || expected == keyring.digest ? .same : .rolledBack
    }
}

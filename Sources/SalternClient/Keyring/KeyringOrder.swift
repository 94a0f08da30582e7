/// The relation of a keyring to the last confirmed one of this device.
enum KeyringOrder {
    /// The keyring is older, or contradicts the confirmed one: the same counter with other content, or a data key that
    /// a rotation has retired.
    case rolledBack
    case same
    case later
}

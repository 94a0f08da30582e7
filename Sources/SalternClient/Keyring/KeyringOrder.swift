/// How a keyring relates to the one that this device has confirmed last.
enum KeyringOrder {
    /// An older one, or one that contradicts the known one: the same counter with other content, or a data key that a rotation
    /// has retired.
    case rolledBack
    case same
    case later
}

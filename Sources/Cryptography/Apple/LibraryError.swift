/// A failure of CryptoKit or CommonCrypto, thrown by ``AESGCM`` and the other algorithms.
public struct LibraryError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The operation, and the library's description of the failure.
    public let description: String

    init(_ operation: String, _ reason: some Any) { description = "\(operation): \(reason)" }
}

/// What ``AESGCM`` and others throw when CryptoKit or CommonCrypto failed.
public struct LibraryError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What was being done, and what the library had to say about it.
    public let description: String

    init(_ operation: String, _ reason: some Any) { description = "\(operation): \(reason)" }
}

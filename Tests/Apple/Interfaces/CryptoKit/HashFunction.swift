internal import COpenSSL
public import Foundation

/// https://developer.apple.com/documentation/cryptokit/hashfunction
public protocol HashFunction: Sendable {
    associatedtype Digest: ContiguousBytes
    init()
    mutating func update(bufferPointer: UnsafeRawBufferPointer)
    func finalize() -> Digest
}

/// https://developer.apple.com/documentation/cryptokit/sha256
public struct SHA256: HashFunction {
    private var message: [UInt8] = []

    public init() {}

    public mutating func update(bufferPointer: UnsafeRawBufferPointer) { message += bufferPointer }

    public func finalize() -> SHA256Digest { SHA256Digest(bytes: digest("SHA256", message)) }
}

/// https://developer.apple.com/documentation/cryptokit/sha256digest
public struct SHA256Digest: ContiguousBytes, Sendable {
    let bytes: [UInt8]

    public func withUnsafeBytes<R>(_ body: (UnsafeRawBufferPointer) throws -> R) rethrows -> R {
        try bytes.withUnsafeBytes(body)
    }
}

/// https://developer.apple.com/documentation/cryptokit/insecure
public enum Insecure {
    /// https://developer.apple.com/documentation/cryptokit/insecure/sha1
    public struct SHA1: HashFunction {
        private var message: [UInt8] = []

        public init() {}

        public mutating func update(bufferPointer: UnsafeRawBufferPointer) { message += bufferPointer }

        public func finalize() -> SHA1Digest { SHA1Digest(bytes: digest("SHA1", message)) }
    }

    /// https://developer.apple.com/documentation/cryptokit/insecure/sha1digest
    public struct SHA1Digest: ContiguousBytes, Sendable {
        let bytes: [UInt8]

        public func withUnsafeBytes<R>(_ body: (UnsafeRawBufferPointer) throws -> R) rethrows -> R {
            try bytes.withUnsafeBytes(body)
        }
    }
}

private func digest(_ name: String, _ message: [UInt8]) -> [UInt8] {
    var output = [UInt8](repeating: 0, count: 64)
    var count = 0
    let done = EVP_Q_digest(nil, name, nil, message, message.count, &output, &count)
    precondition(done == 1, "OpenSSL has \(name)")
    return Array(output[..<count])
}

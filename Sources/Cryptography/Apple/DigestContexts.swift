internal import CryptoKit
internal import Foundation

/// Computes one digest.
struct SHA256Context: ~Copyable {
    private var hash = CryptoKit.SHA256()

    mutating func update(_ bytes: UnsafeRawBufferPointer) { hash.update(bufferPointer: bytes) }

    /// Writes 32 bytes. This is the last call.
    borrowing func finish(into digest: UnsafeMutablePointer<UInt8>) {
        hash.finalize().withUnsafeBytes { bytes in
            UnsafeMutableRawPointer(digest).copyMemory(from: bytes)
        }
    }

    /// Computes the digest of a whole message.
    static func hash(_ bytes: UnsafeRawBufferPointer, into digest: UnsafeMutablePointer<UInt8>) {
        var context = SHA256Context()
        context.update(bytes)
        context.finish(into: digest)
    }
}

extension UnsafeMutableRawPointer {
    /// Copies all of `bytes` to this address.
    func copyMemory(from bytes: UnsafeRawBufferPointer) {
        guard let base = bytes.baseAddress else { return }
        copyMemory(from: base, byteCount: bytes.count)
    }
}

/// An HMAC key. CryptoKit zeroes it with its last copy.
struct HMACContext: Sendable {
    private let key: SymmetricKey
    private let digest: HMACDigest

    init(_ digest: HMACDigest, key: some ByteSource) {
        self.digest = digest
        self.key = key.withContiguousBytes { SymmetricKey(data: $0) }
    }

    func authenticate(_ message: some ByteSource, into code: UnsafeMutableBufferPointer<UInt8>) {
        message.withContiguousBytes { message in
            switch digest {
            case .sha1: write(HMAC<Insecure.SHA1>.authenticationCode(for: message, using: key), to: code)
            case .sha256: write(HMAC<CryptoKit.SHA256>.authenticationCode(for: message, using: key), to: code)
            }
        }
    }

    private func write(_ computed: some MessageAuthenticationCode, to code: UnsafeMutableBufferPointer<UInt8>) {
        computed.withUnsafeBytes { UnsafeMutableRawBufferPointer(code).copyMemory(from: $0) }
    }
}

internal import CryptoKit

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

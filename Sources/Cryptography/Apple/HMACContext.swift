internal import CryptoKit
internal import Foundation

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

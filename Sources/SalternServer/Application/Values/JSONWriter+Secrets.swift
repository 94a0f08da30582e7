internal import Cryptography
internal import HTTPCore

extension JSONWriter {
    /// Writes a secret as a prefix and base64url. The document holds the only copy of the text.
    mutating func member(_ name: String, _ prefix: String, base64URL secret: SecureBytes) {
        self.name(name)
        string(plainCapacity: prefix.utf8.count + Base64.encodedCount(secret.count)) { target in
            let start = Self.put(prefix, into: target)
            let rest = UnsafeMutableRawBufferPointer(UnsafeMutableBufferPointer(rebasing: target[start...]))
            return start + Base64URL.encode(secret, into: rest)
        }
    }

    /// Writes a secret in base32 without padding between two texts that need no escapes. The document holds the only
    /// copy of the text.
    mutating func member(_ name: String, _ prefix: String = "", base32 secret: SecureBytes, _ suffix: String = "") {
        self.name(name)
        let count = Base32.encodedCount(secret.count, isPadded: false)
        string(plainCapacity: prefix.utf8.count + count + suffix.utf8.count) { target in
            let start = Self.put(prefix, into: target)
            let end = start + Base32.encode(secret, isPadded: false, into: .init(rebasing: target[start...]))
            return end + Self.put(suffix, into: .init(rebasing: target[end...]))
        }
    }

    private static func put(_ text: String, into target: UnsafeMutableBufferPointer<UInt8>) -> Int {
        for (index, byte) in text.utf8.enumerated() { target[index] = byte }
        return text.utf8.count
    }
}

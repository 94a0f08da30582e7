internal import Cryptography
internal import HTTPCore

extension JSONWriter {
    /// Writes bytes as canonical base64.
    mutating func member(_ name: String, base64 bytes: [UInt8]) {
        self.name(name)
        string(base64: bytes)
    }

    /// Writes bytes as a string of canonical base64.
    mutating func string(base64 bytes: [UInt8]) {
        let count = Base64.encodedCount(bytes.count)
        string(plainCapacity: count) { target in
            Base64.encode(bytes, into: UnsafeMutableRawBufferPointer(target))
            return count
        }
    }
}

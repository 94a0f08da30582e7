internal import Cryptography
internal import HTTPCore

extension JSONWriter {
    /// Writes bytes as canonical base64.
    mutating func member(_ name: String, base64 bytes: [UInt8]) {
        member(name, plain: Base64.encode(bytes))
    }
}

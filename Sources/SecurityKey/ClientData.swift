internal import Cryptography
internal import SalternClient

/// The parts of a ceremony that a browser makes, and a client without browser makes itself.
enum ClientData {
    /// The client data (WebAuthn Level 3 §5.8.1). The site is a domain name and needs no escaping.
    static func bytes(_ type: String, _ challenge: Base64URLBytes, site: String) -> [UInt8] {
        let challenge = Base64URL.encodeToString(challenge.bytes)
        return Array(
            #"{"type":"\#(type)","challenge":"\#(challenge)","origin":"https://\#(site)","crossOrigin":false}"#.utf8)
    }

    /// The salt of hmac-secret for an input of PRF (WebAuthn Level 3 §10.1.4).
    static func salt(of input: [UInt8]) -> [UInt8] {
        SHA256.hash(Array("WebAuthn PRF".utf8) + [0] + input).bytes
    }

    /// Returns the content of a byte string of CBOR (RFC 8949 §3.1).
    static func content(ofByteString bytes: [UInt8]) throws(PasskeyError) -> [UInt8] {
        let head: Int
        let count: Int
        guard let first = bytes.first else { throw .failed }
        switch first {
        case 0x40...0x57: (head, count) = (1, Int(bytes[0]) - 0x40)
        case 0x58 where bytes.count > 1: (head, count) = (2, Int(bytes[1]))
        case 0x59 where bytes.count > 2: (head, count) = (3, Int(bytes[1]) << 8 | Int(bytes[2]))
        default: throw .failed
        }
        guard bytes.count == head + count else { throw .failed }
        return Array(bytes[head...])
    }
}

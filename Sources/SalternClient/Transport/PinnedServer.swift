internal import Cryptography

/// Where the server is and how it is recognised.
public struct PinnedServer: Sendable {
    /// `https://host` or `https://host:port`.
    public var base: String
    /// `sha256//` and base64, each; one of them has to fit. Without any, the certificate alone decides.
    public var pins: [String]
    /// A certificate in PEM that is the only anchor; nil for the system's anchors.
    public var anchor: [UInt8]?

    public init(base: String, pins: [String], anchor: [UInt8]? = nil) {
        self.base = base
        self.pins = pins
        self.anchor = anchor
    }

    /// Whether base and pins are well-formed: an `https` URL without user, path, query or fragment, and pins of 32 bytes.
    var isValid: Bool {
        let prefix = "https://"
        guard base.hasPrefix(prefix), base.utf8.count > prefix.utf8.count,
            base.utf8.dropFirst(prefix.utf8.count).allSatisfy({
                $0 > 0x20 && $0 < 0x7f && !"/?#@\\".utf8.contains($0)
            })
        else { return false }
        return pins.allSatisfy { Self.digest(ofPin: $0) != nil }
    }

    /// What a pin says: the SHA-256 of a SubjectPublicKeyInfo (RFC 7469 section 2.4).
    static func digest(ofPin pin: String) -> SHA256Digest? {
        let prefix = "sha256//"
        guard pin.hasPrefix(prefix), let digest = try? Base64.decode(Array(pin.utf8.dropFirst(prefix.utf8.count)))
        else {
            return nil
        }
        return SHA256Digest(digest)
    }
}

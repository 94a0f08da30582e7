internal import Cryptography

/// A server: its address, the pins of its keys, and the anchor of its certificate.
///
/// ```swift
/// let server = PinnedServer(base: "https://api.example.org", pins: [pin, backupPin])
/// let settings = VaultSettings(
///     folder: folder, transport: try CurlTransport(server),
///     stretching: StretchingRule(saltPrefix: "com.example.notes:"))
/// show(try await Vault.resume(settings)?.userid ?? "sign up")
/// ```
public struct PinnedServer: Sendable {
    /// `https://host` or `https://host:port`.
    public var base: String
    /// The pins, each `sha256//` and base64; one of them has to match. Without pins, only the certificate is checked.
    public var pins: [String]
    /// A certificate in PEM that is the only anchor; nil for the system's anchors.
    public var anchor: [UInt8]?

    /// Creates a description of a server. It is checked when a transport is created.
    public init(base: String, pins: [String], anchor: [UInt8]? = nil) {
        self.base = base
        self.pins = pins
        self.anchor = anchor
    }

    /// Returns the canonical form of a server's address, so that equal addresses are equal texts. It has scheme and
    /// host in lower case, no slash at the end, and no port 443 (RFC 9110 section 4.2.3).
    ///
    /// Returns nil unless the text is `https://host` or `https://host:port`.
    public static func canonical(_ address: String) -> String? {
        let prefix = "https://"
        guard address.prefix(prefix.count).lowercased() == prefix else { return nil }
        var authority = address.dropFirst(prefix.count).lowercased()
        if authority.hasSuffix("/") { authority.removeLast() }
        let host: Substring
        // The last colon separates the port, unless it is inside of an IPv6 address.
        if let colon = authority.lastIndex(of: ":"), !authority[colon...].contains("]") {
            let port = authority[authority.index(after: colon)...]
            guard port.isEmpty || UInt16(port) != nil, port.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
                return nil
            }
            host = authority[..<colon]
            if let number = UInt16(port), number != 443 { return suffixed(host, ":\(number)") }
        } else {
            host = authority[...]
        }
        return suffixed(host, "")
    }

    /// Returns the host of a server's address, in lower case and without the port.
    public static func host(of address: String) -> String? {
        guard let canonical = canonical(address) else { return nil }
        let authority = canonical.dropFirst("https://".count)
        guard let colon = authority.lastIndex(of: ":"), !authority[colon...].contains("]") else {
            return String(authority)
        }
        return String(authority[..<colon])
    }

    private static func suffixed(_ host: Substring, _ port: String) -> String? {
        let isPlain = host.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7f && !"/?#@\\".utf8.contains($0) }
        let hasColon = host.contains(":")
        guard !host.isEmpty, isPlain, !hasColon || host.hasPrefix("[") && host.hasSuffix("]") else { return nil }
        return "https://\(host)\(port)"
    }

    /// Returns the malformed part; nil when everything is well-formed. The base must be an `https` URL without user,
    /// path, query or fragment. A pin must have 32 bytes, and an anchor a certificate in PEM.
    var fault: ConfigurationFault? {
        let prefix = "https://"
        guard base.hasPrefix(prefix), base.utf8.count > prefix.utf8.count,
            base.utf8.dropFirst(prefix.utf8.count).allSatisfy({
                $0 > 0x20 && $0 < 0x7f && !"/?#@\\".utf8.contains($0)
            })
        else { return .address }
        if let pin = pins.first(where: { Self.digest(ofPin: $0) == nil }) { return .pin(pin) }
        if let anchor, PEMCertificates.decode(anchor) == nil { return .certificate }
        return nil
    }

    /// Returns the digest of a pin: the SHA-256 of a SubjectPublicKeyInfo (RFC 7469 section 2.4).
    static func digest(ofPin pin: String) -> SHA256Digest? {
        let prefix = "sha256//"
        guard pin.hasPrefix(prefix), let digest = try? Base64.decode(Array(pin.utf8.dropFirst(prefix.utf8.count)))
        else {
            return nil
        }
        return SHA256Digest(digest)
    }
}

/// Certificates in PEM (RFC 7468 section 5).
enum PEMCertificates {
    /// Returns the DER of each certificate; nil when there is none, or one is not base64.
    static func decode(_ text: [UInt8]) -> [[UInt8]]? {
        var certificates: [[UInt8]] = []
        var encoded: [UInt8]?
        for line in text.split(whereSeparator: { $0 == 0x0a || $0 == 0x0d }) {
            if line.elementsEqual("-----BEGIN CERTIFICATE-----".utf8) {
                encoded = []
            } else if line.elementsEqual("-----END CERTIFICATE-----".utf8) {
                guard let complete = encoded, let certificate = try? Base64.decode(complete) else { return nil }
                certificates.append(certificate)
                encoded = nil
            } else {
                encoded?.append(contentsOf: line)
            }
        }
        return certificates.isEmpty || encoded != nil ? nil : certificates
    }
}

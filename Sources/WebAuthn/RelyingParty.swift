internal import Cryptography

/// Represents the site or app of passkeys: its id, and the origins that may use it.
public struct RelyingParty: Sendable, Hashable {
    /// The reason why the id or an origin is rejected.
    public enum Failure: Error, Sendable, Hashable {
        /// The id is no domain name in lower case.
        case invalidID
        case noOrigins
        /// The origin is neither an https origin nor `android:apk-key-hash:` with base64url of a SHA-256.
        case invalidOrigin(String)
        /// The host of the origin is neither the id nor below it.
        case foreignOrigin(String)
    }

    /// A domain name.
    public let id: String
    public let origins: Set<String>
    let idHash: SHA256Digest

    /// - Parameters:
    ///   - id: A domain name, or `localhost`.
    ///   - origins: Origins in the form of clients (`https://app.example.org`, `android:apk-key-hash:…`). The id
    ///     `localhost` also permits its http origins, for tests in a browser.
    public init(id: String, origins: Set<String>) throws(Failure) {
        guard Self.isDomainName(id) else { throw .invalidID }
        if origins.isEmpty { throw .noOrigins }
        for origin in origins.sorted() { try Self.check(origin, id: id) }
        self.id = id
        self.origins = origins
        idHash = SHA256.hash(id.utf8)
    }

    private static let androidPrefix = "android:apk-key-hash:"

    private static func check(_ origin: String, id: String) throws(Failure) {
        if origin.hasPrefix(androidPrefix) {
            let digest = try? Base64URL.decode(origin.dropFirst(androidPrefix.count).utf8.map { $0 })
            guard digest?.count == SHA256Digest.byteCount else { throw .invalidOrigin(origin) }
            return
        }
        let scheme = origin.hasPrefix("https://") ? "https://" : "http://"
        guard origin.hasPrefix(scheme), scheme == "https://" || id == "localhost" else { throw .invalidOrigin(origin) }
        let parts = origin.dropFirst(scheme.count).split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count <= 2, let host = parts.first.map(String.init), isDomainName(host) else {
            throw .invalidOrigin(origin)
        }
        // Clients omit the default port, and write no leading zero.
        if parts.count == 2 {
            guard let port = UInt16(parts[1]), port > 0, String(port) == parts[1],
                port != (scheme == "https://" ? 443 : 80)
            else { throw .invalidOrigin(origin) }
        }
        guard host == id || host.hasSuffix(".\(id)") else { throw .foreignOrigin(origin) }
    }

    /// Returns true for a domain name of lower-case letters, digits and hyphens (RFC 1123 §2.1) that is no IPv4
    /// address.
    private static func isDomainName(_ name: String) -> Bool {
        let labels = name.split(separator: ".", omittingEmptySubsequences: false)
        guard (1...253).contains(name.utf8.count), labels.count > 1 || name == "localhost" else { return false }
        return labels.allSatisfy { label in
            (1...63).contains(label.utf8.count) && label.first != "-" && label.last != "-"
                && label.utf8.allSatisfy { byte in
                    (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte)
                        || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || byte == UInt8(ascii: "-")
                }
        } && labels.last?.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) } == false
    }
}

extension RelyingParty {
    /// Checks the common parts of a registration and an assertion (WebAuthn Level 3 §7.1 and §7.2).
    func check(
        _ clientData: ClientData, _ data: AuthenticatorData, challenge: [UInt8], requiresUserVerification: Bool
    ) throws(WebAuthnFailure) {
        guard constantTimeEquals(clientData.challenge, challenge) else { throw .wrongChallenge }
        guard origins.contains(clientData.origin) else { throw .wrongOrigin }
        guard data.relyingPartyIDHash == idHash else { throw .wrongRelyingParty }
        guard data.flags.contains(.userPresent) else { throw .userNotPresent }
        if requiresUserVerification, !data.flags.contains(.userVerified) { throw .userNotVerified }
    }
}

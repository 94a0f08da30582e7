internal import Cryptography

/// Parses the data that an authenticator signs (WebAuthn Level 3 §6.1).
struct AuthenticatorData {
    /// The flags of §6.1. Reserved ones are ignored, as the specification requires.
    struct Flags: OptionSet {
        let rawValue: UInt8

        static let userPresent = Flags(rawValue: 1 << 0)
        static let userVerified = Flags(rawValue: 1 << 2)
        static let backupEligible = Flags(rawValue: 1 << 3)
        static let backedUp = Flags(rawValue: 1 << 4)
        static let attestedCredential = Flags(rawValue: 1 << 6)
        static let extensions = Flags(rawValue: 1 << 7)
    }

    /// The credential of a registration (§6.5.1).
    struct Credential {
        let aaguid: [UInt8]
        let id: [UInt8]
        let key: CredentialKey
    }

    /// The longest data, in bytes. A long credential id, an RSA key and outputs of extensions need less.
    static let byteLimit = 8_192
    /// The longest credential id (§5.8.3).
    static let credentialIDLimit = 1_023
    /// The size of RP id hash, flags and sign count.
    private static let headCount = 37

    let bytes: ArraySlice<UInt8>
    let relyingPartyIDHash: SHA256Digest
    let flags: Flags
    let signCount: UInt32
    let credential: Credential?
    /// The names of the extensions with an output.
    let extensions: Set<String>

    init(_ bytes: ArraySlice<UInt8>) throws(WebAuthnFailure) {
        guard bytes.count <= Self.byteLimit else { throw .tooLong }
        guard bytes.count >= Self.headCount else { throw .malformedAuthenticatorData }
        let start = bytes.startIndex
        guard let hash = SHA256Digest(bytes[start..<start + 32]) else { throw .malformedAuthenticatorData }
        self.bytes = bytes
        relyingPartyIDHash = hash
        flags = Flags(rawValue: bytes[start + 32])
        signCount = bytes[start + 33..<start + 37].reduce(0) { $0 << 8 | UInt32($1) }
        var rest = bytes[(start + Self.headCount)...]
        credential = flags.contains(.attestedCredential) ? try Self.takeCredential(from: &rest) : nil
        extensions = flags.contains(.extensions) ? try Self.takeExtensions(from: &rest) : []
        guard rest.isEmpty else { throw .trailingBytes }
        if flags.contains(.backedUp) && !flags.contains(.backupEligible) { throw .impossibleBackup }
    }

    private static func takeCredential(from rest: inout ArraySlice<UInt8>) throws(WebAuthnFailure) -> Credential {
        guard rest.count >= 18 else { throw .malformedAuthenticatorData }
        let aaguid = [UInt8](rest.prefix(16))
        rest = rest.dropFirst(16)
        let count = Int(rest[rest.startIndex]) << 8 | Int(rest[rest.startIndex + 1])
        rest = rest.dropFirst(2)
        guard (1...credentialIDLimit).contains(count), rest.count >= count else { throw .malformedAuthenticatorData }
        let id = [UInt8](rest.prefix(count))
        rest = rest.dropFirst(count)
        guard case .map(let members) = try takeItem(from: &rest) else { throw .malformedKey }
        return Credential(aaguid: aaguid, id: id, key: try CredentialKey(cose: members))
    }

    private static func takeExtensions(from rest: inout ArraySlice<UInt8>) throws(WebAuthnFailure) -> Set<String> {
        guard case .map(let members) = try takeItem(from: &rest) else { throw .malformedAuthenticatorData }
        var names: Set<String> = []
        for key in members.keys {
            guard case .text(let name) = key else { throw .malformedAuthenticatorData }
            names.insert(name)
        }
        return names
    }

    private static func takeItem(from rest: inout ArraySlice<UInt8>) throws(WebAuthnFailure) -> CBORValue {
        let item = try CBORBounds.firstItem(of: rest)
        rest = rest[item.endIndex...]
        return try CBORValue(decoding: item)
    }
}

public import Cryptography

/// The link of an invitation: `https://HOST/j/ID#FSECRETCHECK`.
///
/// `F` is `1`, or `2` when the link is useless without its code. ID, secret and check are 22 letters and digits each.
/// The check is the beginning of the hash of the entry that opened the invitation. So neither the server nor other
/// holders of the link can answer it with another vault or another log.
public struct InvitationLink: Sendable {
    /// The reason for which a text is no link of an invitation.
    public enum Malformation: Error, Hashable, Sendable {
        /// The text is not `https://HOST/j/ID`, with or without a part after `#`.
        case notALink
        /// The part after `#` is missing.
        case noSecret
        /// The part after `#` is cut off, changed, or of a later version.
        case brokenSecret
    }

    /// `https://host` or `https://host:port`, in lower case.
    public let server: String
    /// The id of the invitation.
    public let id: InvitationID
    /// True when there is a code.
    public let hasCode: Bool
    /// The secret, 16 bytes.
    public let secret: SecureBytes
    /// The first 16 bytes of the hash of the entry that opened the invitation.
    public let check: [UInt8]

    private static let scheme = "https://"
    private static let checkByteCount = 16

    /// Makes the link of an invitation whose entry is in the log.
    /// - Parameter server: `https://host` or `https://host:port`.
    /// - Returns: nil for another form of server, or a secret of another length.
    public init?(server: String, _ invitation: VaultInvitation, secret: SecureBytes) {
        guard let server = Self.server(server), secret.count == InvitationSecrets.secretByteCount else { return nil }
        self.server = server
        id = invitation.terms.id
        hasCode = invitation.terms.hasCode
        self.secret = secret
        check = Array(invitation.entry.hash.bytes.prefix(Self.checkByteCount))
    }

    /// Parses a link. White space around it, and a query or a slash at the end of the path, do not matter.
    public init(_ text: String) throws(Malformation) {
        let trimmed = text.drop(while: \.isWhitespace)
        let end = trimmed.lastIndex { !$0.isWhitespace }.map { trimmed.index(after: $0) } ?? trimmed.startIndex
        let parts = trimmed[..<end].split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false)
        guard let address = parts.first, address.prefix(Self.scheme.count).lowercased() == Self.scheme else {
            throw .notALink
        }
        let path = address.dropFirst(Self.scheme.count).prefix { $0 != "?" }
            .split(separator: "/", omittingEmptySubsequences: false)
        guard path.count == 3 || (path.count == 4 && path[3].isEmpty), path[1] == "j",
            let server = Self.server(Self.scheme + path[0]), let id = Self.bytes(path[2]).flatMap({ InvitationID($0) })
        else { throw .notALink }
        guard parts.count == 2, !parts[1].isEmpty else { throw .noSecret }
        let fragment = parts[1]
        guard let form = fragment.first, form == "1" || form == "2",
            fragment.utf8.count == 1 + 2 * Base62.characterCount,
            let secret = Base62.decodeBytes(Array(fragment.utf8.dropFirst().prefix(Base62.characterCount))),
            let check = Self.bytes(fragment.dropFirst(1 + Base62.characterCount))
        else { throw .brokenSecret }
        self.server = server
        self.id = id
        hasCode = form == "2"
        self.secret = secret
        self.check = check
    }

    /// The whole link, with the secret.
    public var text: String {
        func text(_ bytes: some ByteSource) -> String {
            Base62.encode(bytes: bytes).withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
        }
        return "\(server)/j/\(text(id.bytes))#\(hasCode ? "2" : "1")\(text(secret))\(text(check))"
    }

    /// Returns true when an entry opened the invitation of this link.
    public func isOf(_ invitation: VaultInvitation) -> Bool {
        invitation.terms.id == id && invitation.terms.hasCode == hasCode
            && invitation.entry.hash.bytes.prefix(Self.checkByteCount).elementsEqual(check)
    }

    private static func bytes(_ text: Substring) -> [UInt8]? {
        Base62.decodeBytes(Array(text.utf8)).map { $0.withUnsafeBytes { [UInt8]($0) } }
    }

    /// Returns a server in lower case, or nil for anything but a scheme, a host of ASCII, and maybe a port.
    private static func server(_ text: String) -> String? {
        let text = text.lowercased()
        guard text.hasPrefix(scheme) else { return nil }
        let host = text.dropFirst(scheme.count)
        let isPlain = host.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."),
                UInt8(ascii: "-"), UInt8(ascii: ":"), UInt8(ascii: "["), UInt8(ascii: "]"):
                true
            default: false
            }
        }
        return !host.isEmpty && isPlain ? text : nil
    }
}

extension InvitationLink: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    public var description: String { "InvitationLink(redacted)" }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// All that follows from the secret of an invitation's link and from its code.
public struct InvitationSecrets: Sendable {
    /// The id in the link.
    public let id: InvitationID
    /// The token that fetches the invitation, 32 bytes. The server stores its SHA-256.
    public let token: SecureBytes
    /// Signs joins. The log contains its public half.
    public let admissionKey: P256.PrivateKey
    let previewKey: SecureBytes
    let generationKeyKey: SecureBytes

    /// The size of the secret, in bytes.
    public static let secretByteCount = 16

    /// Derives everything. With a code this takes a moment of computing (``PBKDF2/recommendedIterations``).
    /// - Throws: ``P256/Failure`` for a secret of another length, or when the platform's library failed.
    public init(_ id: InvitationID, secret: SecureBytes, code: InvitationCode?) throws(P256.Failure) {
        guard secret.count == Self.secretByteCount else { throw .notAKey }
        let material = try Self.material(id, secret, code)
        self.id = id
        token = VaultLabel.invitationToken.derive(material, id.bytes)
        previewKey = VaultLabel.invitationPreview.derive(material, id.bytes)
        generationKeyKey = VaultLabel.invitationKey.derive(material, id.bytes)
        admissionKey = try Self.admissionKey(id, material)
    }

    /// The secret, or secret ‖ PBKDF2(code, salt from the secret).
    private static func material(
        _ id: InvitationID, _ secret: SecureBytes, _ code: InvitationCode?
    ) throws(P256.Failure) -> SecureBytes {
        guard let code else { return secret }
        let salt = HKDF.deriveKey(from: secret, info: VaultLabel.invitationSalt.text(id.bytes), byteCount: 16)
        guard let derived = try? PBKDF2.deriveKey(from: code.text, salt: salt) else { throw .notAKey }
        return SecureBytes(concatenating: [secret, derived])
    }

    /// The first candidate that is a private key. All but one in 2³² first candidates are.
    private static func admissionKey(
        _ id: InvitationID, _ material: SecureBytes
    ) throws(P256.Failure) -> P256.PrivateKey {
        for counter in UInt8.min ... .max {
            let number = VaultLabel.invitationAdmission.derive(material, id.bytes, [counter])
            if let key = try? P256.PrivateKey(number: number) { return key }
        }
        throw .notAKey
    }

    /// The digest of the token, which the server stores.
    public var tokenHash: SHA256Digest { SHA256.hash(token) }
}

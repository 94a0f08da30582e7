internal import Cryptography
internal import HTTPCore
internal import Postgres

/// The code for one registration: `sli_` and base64url of 24 random bytes. Only its hash is stored.
public struct InviteCode: Sendable {
    private let secret: SecureBytes

    static let prefix = "sli_"
    static let secretByteCount = 24

    private init(secret: SecureBytes) {
        self.secret = secret
    }

    static func random() -> InviteCode { InviteCode(secret: SecureRandom.secureBytes(secretByteCount)) }

    /// Reads the `invite` member as typed or pasted. Nil if the text is empty, like an empty field of a form.
    ///
    /// - Throws: ``RegistrationProblem/invalidInvite`` for all malformed codes, without the reason.
    init?(optional json: JSONValue) throws {
        guard let text = PastedCode.read(try json.text(), keepsHyphens: true) else {
            throw RegistrationProblem.invalidInvite
        }
        if text.isEmpty { return nil }
        guard let secret = text.withContiguousStorageIfAvailable(Self.parse) ?? nil else {
            throw RegistrationProblem.invalidInvite
        }
        self.init(secret: secret)
    }

    private static func parse(_ text: UnsafeBufferPointer<UInt8>) -> SecureBytes? {
        let prefix = Self.prefix.utf8
        guard text.starts(with: prefix),
            let secret = try? Base64URL.decodeSecure(
                UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(text)[prefix.count...])),
            secret.count == secretByteCount
        else { return nil }
        return secret
    }

    /// The stored hash.
    var hash: InviteHash { InviteHash(SHA256.hash(secret)) }

    /// The code in the form that users receive, shown once.
    public var text: String { Self.prefix + Base64URL.encodeToString(secret) }
}

/// SHA-256 of an invite's random part.
struct InviteHash: StoredDigest {
    let digest: SHA256Digest
}

public import Cryptography

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

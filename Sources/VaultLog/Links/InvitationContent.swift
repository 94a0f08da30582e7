public import Cryptography

/// The sealed parts of an invitation, which the server stores.
///
/// The log contains everything else that a joiner needs. The key of the generation is a part of its own: the server
/// returns it only to a member.
public struct InvitationContent: Sendable {
    /// The names that the link shows before a join, and the key of names: nonce (12) ‖ ciphertext (162) ‖ tag (16).
    public let preview: [UInt8]
    /// The current key: nonce (12) ‖ ciphertext (32) ‖ tag (16).
    public let sealedKey: [UInt8]

    static let contentCount = 2 * MemberName.paddedCount + 32
    /// The size of a preview.
    public static let previewByteCount = 12 + contentCount + AESGCM.tagByteCount
    /// The size of a sealed key.
    public static let sealedKeyByteCount = 12 + GenerationKey.byteCount + AESGCM.tagByteCount

    /// Seals the content of an invitation.
    /// - Parameters:
    ///   - vaultName: The name of the vault.
    ///   - inviter: The name of the inviting manager.
    ///   - key: The key of the current generation.
    public init(
        _ secrets: InvitationSecrets, vaultName: MemberName, inviter: MemberName, _ key: GenerationKey
    ) throws(AESGCM.Failure) {
        try self.init(secrets, vaultName, inviter, key, nonces: (SecureRandom.bytes(12), SecureRandom.bytes(12)))
    }

    /// Seals with the caller's nonces. Only for test vectors.
    init(
        _ secrets: InvitationSecrets, _ vaultName: MemberName, _ inviter: MemberName, _ key: GenerationKey,
        nonces: ([UInt8], [UInt8])
    ) throws(AESGCM.Failure) {
        preview = try AESGCM.seal(
            SecureBytes(concatenating: [vaultName.padded, inviter.padded, NameKey(key).bytes]),
            using: secrets.previewKey, uniqueNonce: nonces.0)
        sealedKey = try AESGCM.seal(key.bytes, using: secrets.generationKeyKey, uniqueNonce: nonces.1)
    }
}

/// An invitation before the join, verified against the log.
public struct InvitationPreview: Sendable {
    /// The reason for which an invitation is not usable.
    public enum Failure: Error, Hashable, Sendable {
        /// The entry of the link is not in the log. The server, or another holder of the link, shows another vault.
        case wrongLog
        /// The secret or the code is not that of the invitation.
        case wrongSecrets
        /// The preview was changed, or made without the link.
        case notAuthentic
        /// A later entry closed the invitation, or it is used up.
        case closed
        /// The invitation has expired.
        case expired
        /// The key is not that of the log's current generation.
        case wrongKey
    }

    /// The name of the vault, as the inviter has sealed it.
    public let vaultName: MemberName
    /// The name of the inviter, as the inviter has sealed it. Other holders of the link can seal another one.
    public let inviterName: MemberName
    /// Seals the joiner's name.
    public let nameKey: NameKey
    /// The verified terms.
    public let terms: InvitationTerms
    /// The manager that opened the invitation.
    public let inviter: MemberID

    /// Verifies an invitation.
    /// - Parameters:
    ///   - link: The link.
    ///   - secrets: Its secrets.
    ///   - sealed: The preview.
    ///   - log: The log that the server returned with it.
    ///   - now: The present time.
    public init(
        _ link: InvitationLink, _ secrets: InvitationSecrets, _ sealed: [UInt8], _ log: MembershipLog, at now: EntryTime
    ) throws(Failure) {
        guard let invitation = log.invitations[link.id], link.isOf(invitation) else { throw .wrongLog }
        guard secrets.id == link.id, secrets.admissionKey.publicKey == invitation.terms.admissionKey else {
            throw .wrongSecrets
        }
        guard !invitation.isClosed, invitation.joins < invitation.terms.uses else { throw .closed }
        guard invitation.isOpen(at: log.effective(now)) else { throw .expired }
        let count = MemberName.paddedCount
        guard let opened = try? AESGCM.open(sealed, using: secrets.previewKey),
            opened.count == InvitationContent.contentCount,
            let vaultName = MemberName(padded: opened.open(0..<count)[...]),
            let inviterName = MemberName(padded: opened.open(count..<2 * count)[...])
        else { throw .notAuthentic }
        nameKey = NameKey(opened.slice(2 * count..<InvitationContent.contentCount))
        self.vaultName = vaultName
        self.inviterName = inviterName
        terms = invitation.terms
        inviter = invitation.inviter
    }

    /// Opens the key that the server returns after the join, without the preview.
    /// - Returns: nil unless it is the key that the log describes.
    public static func openKey(
        _ sealed: [UInt8], _ secrets: InvitationSecrets, _ number: GenerationNumber, _ log: MembershipLog
    ) -> GenerationKey? {
        guard let opened = try? AESGCM.open(sealed, using: secrets.generationKeyKey), let key = GenerationKey(opened),
            let generation = log.generation(number), generation.describes(key)
        else { return nil }
        return key
    }

    /// Opens the key that the server returns after the join.
    /// - Parameter number: The generation at the join.
    /// - Throws: ``Failure/wrongKey`` also when the key of names was another one: others cannot read the member's name.
    public func openKey(
        _ sealed: [UInt8], _ secrets: InvitationSecrets, _ number: GenerationNumber, _ log: MembershipLog
    ) throws(Failure) -> GenerationKey {
        guard let opened = try? AESGCM.open(sealed, using: secrets.generationKeyKey) else { throw .notAuthentic }
        guard let key = GenerationKey(opened), let generation = log.generation(number), generation.describes(key),
            nameKey == NameKey(key)
        else { throw .wrongKey }
        return key
    }
}

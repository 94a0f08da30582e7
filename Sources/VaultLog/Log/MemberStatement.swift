public import Cryptography

/// A statement that a member signs beside the log.
public struct MemberStatement: Hashable, Sendable {
    /// The kinds of statements.
    public enum Kind: Hashable, Sendable {
        /// The member has seen a head. Others notice a server that shows two histories.
        case seen
        /// The member belongs to an account. After a restored backup, the server has put back a join without its
        /// account.
        case claim(MemberAccountID)
    }

    /// The kind.
    public let kind: Kind
    /// The member.
    public let member: MemberID
    /// The head of the member's log.
    public let head: Head
    /// The signature by the member's present key.
    public let signature: VaultSignature

    /// Creates a statement from its parts.
    public init(_ kind: Kind, _ member: MemberID, _ head: Head, _ signature: VaultSignature) {
        self.kind = kind
        self.member = member
        self.head = head
        self.signature = signature
    }

    /// Signs a statement.
    public init(_ kind: Kind, by signer: MemberSigner, _ head: Head) throws(P256.Failure) {
        let text = Self.text(kind, signer.vault, signer.member, head)
        self.init(kind, signer.member, head, try VaultSignature.sign(text, with: signer.key))
    }

    /// Returns true for a statement of a present member, by its present key.
    public func isValid(in log: MembershipLog) -> Bool {
        guard let member = log.members[member], member.role != nil else { return false }
        return signature.isValid(Self.text(kind, log.vault, member.id, head), by: member.current.verifying)
    }

    static func text(_ kind: Kind, _ vault: VaultID, _ member: MemberID, _ head: Head) -> [UInt8] {
        switch kind {
        case .seen: VaultLabel.seen.text(vault.bytes, member.bytes, head.bytes)
        case .claim(let account): VaultLabel.claim.text(vault.bytes, member.bytes, account.bytes, head.bytes)
        }
    }
}

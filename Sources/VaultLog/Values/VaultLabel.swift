internal import Cryptography

/// The beginnings of all that shared vaults sign, derive and authenticate. Each has one purpose and never changes,
/// because entries and sealed bytes must remain valid. docs/shared-vaults-protocol.md specifies the bytes after them.
enum VaultLabel: String, CaseIterable {
    /// The signature of an entry.
    case entry = "saltern-1 vault entry"
    /// The signature of a join by the admission key of its invitation.
    case admission = "saltern-1 vault admission"
    /// The signature of a change of keys by the new key.
    case rekey = "saltern-1 vault rekey"
    /// The signature that binds a member to an account.
    case claim = "saltern-1 vault claim"
    /// The signature of the head that a member has seen.
    case seen = "saltern-1 vault seen"
    /// The signature of an edit of an item.
    case edit = "saltern-1 vault edit"
    /// The hash of an edit.
    case editHash = "saltern-1 vault edit hash"
    /// The mark of an edit in a list.
    case editMark = "saltern-1 vault edit mark"
    /// The code that commits to the key of a generation.
    case generation = "saltern-1 vault generation"
    /// The key of the previous generation's key.
    case previousKey = "saltern-1 vault previous key"
    /// The key between a member's agreement key and an ephemeral one.
    case box = "saltern-1 vault box"
    /// The key of the names of members.
    case nameKey = "saltern-1 vault name key"
    /// The key from which ids of chunks are derived.
    case chunkID = "saltern-1 vault chunk id"
    /// The digest of a head as words.
    case head = "saltern-1 vault head"
    /// The salt of an invitation's code.
    case invitationSalt = "saltern-1 invitation salt"
    /// The token that fetches an invitation.
    case invitationToken = "saltern-1 invitation token"
    /// The key of an invitation's preview.
    case invitationPreview = "saltern-1 invitation preview"
    /// The key of the generation key in an invitation.
    case invitationKey = "saltern-1 invitation key"
    /// The private admission key of an invitation.
    case invitationAdmission = "saltern-1 invitation admission"

    /// Returns label ‖ 00 ‖ fields. The zero ends the label, so that none can be the beginning of another one.
    func text(_ fields: [UInt8]...) -> [UInt8] {
        Array(rawValue.utf8) + [0] + fields.joined()
    }

    /// Derives 32 bytes by HKDF-SHA256 without salt.
    func derive(_ key: some ByteSource, _ fields: [UInt8]...) -> SecureBytes {
        HKDF.deriveKey(from: key, info: Array(rawValue.utf8) + [0] + fields.joined())
    }
}

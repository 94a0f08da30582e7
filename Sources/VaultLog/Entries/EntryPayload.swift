public import Cryptography

/// The content of an entry, by kind.
public enum EntryPayload: Hashable, Sendable {
    /// Founds the vault with its first member, the author.
    case found(Founding)
    /// Opens an invitation.
    case invite(InvitationTerms)
    /// Makes the author a member.
    case join(Join)
    /// Gives a member another role.
    case role(MemberID, Role)
    /// Removes members and begins a generation. The ids are in ascending order.
    case remove(Generation, [MemberID])
    /// Ends the author's membership.
    case leave
    /// Begins a generation.
    case rotate(Generation)
    /// Closes an invitation.
    case revoke(InvitationID)
    /// Lists the edits of an author that count.
    case seal(Seal)
    /// Offers the vault to a manager, or nil to withdraw the offer.
    case offer(MemberID?)
    /// Accepts the offer with this number.
    case accept(EntryNumber)
    /// Replaces the author's keys.
    case rekey(Rekey)

    /// Removes members in any order.
    /// - Returns: nil for no member, and for more than a vault can have.
    public static func removing(_ members: Set<MemberID>, _ generation: Generation) -> EntryPayload? {
        guard (1...LogBounds.members).contains(members.count) else { return nil }
        return .remove(generation, members.sorted { $0.bytes.lexicographicallyPrecedes($1.bytes) })
    }

    /// The kind.
    public var kind: EntryKind {
        switch self {
        case .found: .found
        case .invite: .invite
        case .join: .join
        case .role: .role
        case .remove: .remove
        case .leave: .leave
        case .rotate: .rotate
        case .revoke: .revoke
        case .seal: .seal
        case .offer: .offer
        case .accept: .accept
        case .rekey: .rekey
        }
    }
}

/// The content of a founding entry.
public struct Founding: Hashable, Sendable {
    /// 32 random bytes that make the vault's id unpredictable.
    public let nonce: [UInt8]
    /// The founder's keys.
    public let keys: MemberPublicKeys
    /// The first generation.
    public let generation: Generation
    /// The founder's name.
    public let name: SealedName

    static let nonceCount = 32
}

/// The content of an entry that opens an invitation.
public struct InvitationTerms: Hashable, Sendable {
    /// The id in the link. It is not secret.
    public let id: InvitationID
    /// Verifies that a joiner has the link, and the code if there is one.
    public let admissionKey: P256.PublicKey
    /// The role of joiners.
    public let role: Role
    /// The time until which an entry can join.
    public let expiry: EntryTime
    /// The maximum number of joins, 1 to ``LogBounds/uses``.
    public let uses: UInt16
    /// True when the link is useless without its code.
    public let hasCode: Bool

    /// Creates the terms of an invitation.
    /// - Returns: nil for a number of uses out of bounds.
    public init?(
        id: InvitationID, admissionKey: P256.PublicKey, role: Role, expiry: EntryTime, uses: UInt16, hasCode: Bool
    ) {
        guard (1...LogBounds.uses).contains(uses) else { return nil }
        self.id = id
        self.admissionKey = admissionKey
        self.role = role
        self.expiry = expiry
        self.uses = uses
        self.hasCode = hasCode
    }
}

/// The content of an entry that joins.
public struct Join: Hashable, Sendable {
    /// The keys of the new member.
    public let keys: MemberPublicKeys
    /// The used invitation.
    public let invitation: InvitationID
    /// The name that the member claims.
    public let name: SealedName
    /// The signature of the entry up to here by the admission key.
    public let admission: VaultSignature
}

/// The content of an entry that lists edits: those that count of an author that earlier entries have cut off.
///
/// The list is for all earlier entries that have cut the author off, so it replaces the manager's former one.
public struct Seal: Hashable, Sendable {
    /// The author of the edits.
    public let author: MemberID
    /// The number of edits in the list.
    public let count: UInt32
    /// SHA-256 of the list.
    public let digest: SHA256Digest

    /// The highest number of edits in a list.
    public static let limit: UInt32 = 1 << 24

    /// Describes a list.
    public init(of author: MemberID, _ list: SealList) {
        self.author = author
        count = UInt32(list.edits.count)
        digest = list.digest
    }

    init?(_ reader: inout ByteReader) {
        guard let author = reader.id(MemberID.self), let count = reader.number(UInt32.self), count <= Self.limit,
            let digest = reader.take(SHA256Digest.byteCount).flatMap({ SHA256Digest($0) })
        else { return nil }
        self.author = author
        self.count = count
        self.digest = digest
    }

    /// Author (16) ‖ number of edits (4) ‖ SHA-256 of the list (32).
    var bytes: [UInt8] { author.bytes + count.bigEndianBytes + digest.bytes }
}

/// The content of an entry that replaces keys. The entry itself is signed by the present key.
public struct Rekey: Hashable, Sendable {
    /// The new keys.
    public let keys: MemberPublicKeys
    /// The signature of the entry up to here by the new signing key.
    public let possession: VaultSignature
}

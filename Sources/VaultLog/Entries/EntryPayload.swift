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

/// The bytes of an entry's content. Each kind has one layout, without lengths: the kind decides all of them, and only
/// `remove` has a number of members.
extension EntryPayload {
    /// The bytes. Those of `join` and `rekey` end with the signature that covers the bytes before it.
    var bytes: [UInt8] {
        switch self {
        case .found(let founding):
            founding.nonce + founding.keys.bytes + founding.generation.bytes + founding.name.bytes
        case .invite(let terms): terms.bytes
        case .join(let join):
            Self.joinText(join.keys, join.invitation, join.name) + join.admission.bytes
        case .role(let member, let role): member.bytes + [role.rawValue]
        case .remove(let generation, let members):
            generation.bytes + UInt16(members.count).bigEndianBytes + members.flatMap(\.bytes)
        case .leave: []
        case .rotate(let generation): generation.bytes
        case .revoke(let id): id.bytes
        case .seal(let seal): seal.bytes
        case .offer(let member): member?.bytes ?? Self.nobody
        case .accept(let offer): offer.bytes
        case .rekey(let rekey): rekey.keys.bytes + rekey.possession.bytes
        }
    }

    /// The member of an offer that is withdrawn: zeros.
    private static let nobody = [UInt8](repeating: 0, count: MemberID.byteCount)

    /// The content of a join before its admission signature.
    static func joinText(_ keys: MemberPublicKeys, _ invitation: InvitationID, _ name: SealedName) -> [UInt8] {
        keys.bytes + invitation.bytes + name.bytes
    }

    /// Reads the content of an entry.
    /// - Returns: nil for bytes that are no content of this kind.
    init?(_ kind: EntryKind, _ reader: inout ByteReader) {
        let payload: EntryPayload? =
            switch kind {
            case .found: Founding(&reader).map { .found($0) }
            case .invite: InvitationTerms(&reader).map { .invite($0) }
            case .join: Join(&reader).map { .join($0) }
            case .role: Self.role(&reader)
            case .remove: Self.removal(&reader)
            case .leave: .leave
            case .rotate: Generation(&reader).map { .rotate($0) }
            case .revoke: reader.id(InvitationID.self).map { .revoke($0) }
            case .seal: Seal(&reader).map { .seal($0) }
            case .offer: reader.id(MemberID.self).map { .offer($0.bytes == Self.nobody ? nil : $0) }
            case .accept: reader.number(UInt64.self).flatMap { EntryNumber($0) }.map { .accept($0) }
            case .rekey: Rekey(&reader).map { .rekey($0) }
            }
        guard let payload else { return nil }
        self = payload
    }

    private static func role(_ reader: inout ByteReader) -> EntryPayload? {
        guard let member = reader.id(MemberID.self),
            let role = reader.number(UInt8.self).flatMap({ Role(rawValue: $0) })
        else { return nil }
        return .role(member, role)
    }

    private static func removal(_ reader: inout ByteReader) -> EntryPayload? {
        guard let generation = Generation(&reader), let count = reader.number(UInt16.self),
            (1...LogBounds.members).contains(Int(count))
        else { return nil }
        var members: [MemberID] = []
        for _ in 0..<count {
            guard let member = reader.id(MemberID.self) else { return nil }
            if let last = members.last, !last.bytes.lexicographicallyPrecedes(member.bytes) { return nil }
            members.append(member)
        }
        return .remove(generation, members)
    }
}

extension Founding {
    init?(_ reader: inout ByteReader) {
        guard let nonce = reader.take(Self.nonceCount), let keys = MemberPublicKeys(&reader),
            let generation = Generation(&reader), generation.number == .first,
            let name = reader.take(SealedName.byteCount).flatMap({ SealedName($0) })
        else { return nil }
        self.init(nonce: nonce, keys: keys, generation: generation, name: name)
    }
}

extension InvitationTerms {
    /// Id (16) ‖ admission key (65) ‖ role (1) ‖ expiry (8) ‖ uses (2) ‖ 01, or 02 with a code.
    var bytes: [UInt8] {
        id.bytes + admissionKey.bytes + [role.rawValue] + expiry.bytes + uses.bigEndianBytes + [hasCode ? 2 : 1]
    }

    init?(_ reader: inout ByteReader) {
        guard let id = reader.id(InvitationID.self), let admissionKey = reader.publicKey(),
            let role = reader.number(UInt8.self).flatMap({ Role(rawValue: $0) }),
            let expiry = reader.number(UInt64.self).flatMap({ EntryTime(seconds: $0) }),
            let uses = reader.number(UInt16.self), let form = reader.number(UInt8.self), form == 1 || form == 2
        else { return nil }
        self.init(id: id, admissionKey: admissionKey, role: role, expiry: expiry, uses: uses, hasCode: form == 2)
    }
}

extension Join {
    init?(_ reader: inout ByteReader) {
        guard let keys = MemberPublicKeys(&reader), let invitation = reader.id(InvitationID.self),
            let name = reader.take(SealedName.byteCount).flatMap({ SealedName($0) }), let admission = reader.signature()
        else { return nil }
        self.init(keys: keys, invitation: invitation, name: name, admission: admission)
    }
}

extension Rekey {
    init?(_ reader: inout ByteReader) {
        guard let keys = MemberPublicKeys(&reader), let possession = reader.signature() else { return nil }
        self.init(keys: keys, possession: possession)
    }
}

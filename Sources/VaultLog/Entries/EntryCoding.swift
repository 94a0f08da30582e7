internal import Cryptography

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

internal import Cryptography
internal import Foundation
internal import VaultLog

/// The names of vaults and members. Members claim their names.
extension SharedVaultService {
    /// The name of a vault, as a manager has written it, or as it was at the founding or join.
    func name(of state: SharedVaultState) -> String {
        (try? writtenName(state)) ?? state.record.name ?? state.id.description
    }

    /// The name in the vault's own item; nil when there is none by a manager.
    private func writtenName(_ state: SharedVaultState) throws(VaultError) -> String? {
        let item = ItemID(state.id.uuid)
        let store = try owners.parts(of: .vault(state.id)).scope.store
        guard let content = try session.stored({ try store.current(item) }),
            content.collection == Self.nameCollection,
            let signed = try? sealing(state).signed(content, item),
            state.log.members[signed.body.author]?.role(at: signed.body.head.number) == .manager
        else { return nil }
        let text = signed.body.content.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
        return ClaimedName(received: text)?.text
    }

    /// Keeps the last name by a manager in the account's record: another member can replace the item, but not the name.
    func keepName(_ state: SharedVaultState) throws(VaultError) {
        guard let name = try writtenName(state), name != state.record.name else { return }
        try update(state.id) { $0.name = name }
    }

    /// Writes the name into the vault's own item. The next sync sends it.
    func writeName(_ name: String, _ id: SharedVaultID) throws(VaultError) {
        guard let name = ClaimedName(name.precomposedStringWithCanonicalMapping) else { throw .shared(.invalidName) }
        let state = try known(id)
        guard state.role == .manager else { throw .shared(.notPermitted) }
        try state.checkWritable()
        try owners.parts(of: .vault(id)).items.putUnbounded(
            PlainItem(body: SecureBytes(copying: name.text.utf8)), ItemID(id.uuid), in: Self.nameCollection)
        notify([id])
    }

    /// Returns the name that a member claims; nil when this device does not have its key yet.
    func name(of member: VaultMember, _ state: SharedVaultState) -> String? {
        guard let key = state.keys[member.nameGeneration] else { return nil }
        return member.name.open(of: member.id, NameKey(key))?.text
    }

    /// Returns the number of the last entry of a member.
    func lastEntry(of member: VaultLog.MemberID, in entries: [Entry]) -> EntryNumber? {
        entries.last { $0.author == member }?.number
    }

    // MARK: Snapshots

    /// Describes all vaults of this device, by name.
    func snapshots(_ vault: Vault) throws(VaultError) -> [SharedVault] {
        var vaults: [SharedVault] = []
        for id in try ids() { if let snapshot = try snapshot(id, vault) { vaults.append(snapshot) } }
        return vaults.sorted { ($0.name, $0.id.description) < ($1.name, $1.id.description) }
    }

    /// Describes a vault; nil when this device does not have it.
    func snapshot(_ id: SharedVaultID, _ vault: Vault) throws(VaultError) -> SharedVault? {
        guard let state = try state(id) else { return nil }
        let entries = try session.stored { try session.store.entries(of: id) }
        let now = now
        let invitations = state.log.invitations.values
            .filter { $0.isOpen(at: max(now, $0.entryTime(entries))) && !$0.isClosed }
            .sorted { $0.entry.number < $1.entry.number }
            .map { invitation in
                let id = InvitationID(invitation.terms.id)
                return SharedInvitation(invitation, state.record.labels[id], openings[state.id]?[id])
            }
        return SharedVault(
            id: id, name: name(of: state), role: state.role.map { SharedRole($0) },
            isOwner: state.role != nil && state.own?.id == state.log.owner, members: members(of: state, entries),
            unsealed: unsealed(state), invitations: invitations,
            isRotationDue: state.log.isRotationDue, offeredTo: state.log.offer.map { MemberID($0.to) },
            isConfirmed: state.isConfirmed { lastEntry(of: $0, in: entries) }, problems: state.problems,
            hasLeft: state.hasLeft, verificationWords: state.log.head.words(of: state.log.vault),
            entryCount: state.log.hashes.count, vault: vault)
    }

    private func unsealed(_ state: SharedVaultState) -> [UnsealedWriter] {
        state.log.unsealed.map { id in
            UnsealedWriter(id: MemberID(id), name: state.log.members[id].flatMap { name(of: $0, state) })
        }
    }

    private func members(of state: SharedVaultState, _ entries: [Entry]) -> [SharedMember] {
        let named = state.log.presentMembers.map { (member: $0, name: name(of: $0, state)) }
        var counts: [String: Int] = [:]
        for entry in named { counts[(entry.name ?? "").folded, default: 0] += 1 }
        let seats = Dictionary(state.seats.map { ($0.id, $0) }) { first, _ in first }
        return named.map { member, name in
            let seat = seats[MemberID(member.id)]
            let words = member.joined.hash.words
            let shown = name ?? "member"
            let isAlone = name != nil && counts[shown.folded] == 1
            let head = seat.flatMap { state.seen($0) }
            let index = Int(member.joined.number.value) - 1
            return SharedMember(
                id: MemberID(member.id), name: name,
                distinctName: isAlone ? shown : "\(shown) (\(words.prefix(2).joined(separator: " ")))",
                role: SharedRole(member.role ?? .reader),
                since: entries.indices.contains(index) ? entries[index].time.date : Date(timeIntervalSince1970: 0),
                isOwn: member.id == state.own?.id, isOwner: member.id == state.log.owner,
                isDeparted: seat?.departed ?? false,
                label: member.invitation.flatMap { state.record.labels[InvitationID($0)] }, words: words,
                seen: head.map {
                    SeenHead(number: Int($0.number.value), isKnown: state.log.place(of: $0) == .known)
                })
        }
        .sorted { ($0.distinctName, $0.id) < ($1.distinctName, $1.id) }
    }
}

extension VaultInvitation {
    /// The time of the entry that opened the invitation.
    fileprivate func entryTime(_ entries: [Entry]) -> EntryTime {
        let index = Int(entry.number.value) - 1
        return entries.indices.contains(index) ? entries[index].time : terms.expiry
    }
}

extension SharedInvitation {
    init(_ invitation: VaultInvitation, _ label: String?, _ openings: Int?) {
        self.init(
            id: InvitationID(invitation.terms.id), role: SharedRole(invitation.terms.role),
            inviter: MemberID(invitation.inviter), label: label, expiresAt: invitation.terms.expiry.date,
            uses: Int(invitation.terms.uses), joins: Int(invitation.joins), openings: openings,
            needsCode: invitation.terms.hasCode)
    }
}

extension String {
    /// The form by which names that look alike are equal: compatible characters and letters of both cases are one.
    fileprivate var folded: String { precomposedStringWithCompatibilityMapping.lowercased() }
}

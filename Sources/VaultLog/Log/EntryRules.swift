internal import Cryptography

/// One effect of an entry on the log.
enum EntryChange {
    case member(VaultMember)
    case role(MemberID, Role?)
    case keys(MemberPublicKeys, ES256.VerifyingKey)
    case usesKey(P256.PublicKey)
    case generation(Generation)
    case rotationDue
    case invitation(VaultInvitation)
    case joined(InvitationID)
    case closes(InvitationID)
    case closesAll
    case closesThoseOf(MemberID)
    /// The entry cut off a writer: its edits of earlier heads count only if a seal lists them.
    case cut(MemberID)
    case seal(Seal)
    case offer(MemberID?)
    case owner
    case clock
}

/// The rules for one entry that continues a log. They return the effects of a valid entry.
struct EntryRules {
    let log: MembershipLog
    let entry: Entry
    /// True when the signatures have been verified before.
    let isVerified: Bool

    func check() throws(EntryRejection) -> [EntryChange] {
        guard isPossibleSoLate else { throw .windingDown }
        if case .join(let join) = entry.payload { return try checkJoin(join) }
        guard let author = log.members[entry.author], let role = author.role else { throw .unknownAuthor }
        guard isVerified || entry.isSigned(by: author.current.verifying) else { throw .wrongSignature }
        switch entry.payload {
        case .found: throw .wrongNumber
        case .join: return []
        case .leave: return try checkLeave(author)
        case .rekey(let rekey): return try checkRekey(rekey, author)
        default: break
        }
        guard role == .manager else { throw .notPermitted }
        return try checkManagers() + [.clock]
    }

    /// From ``LogBounds/windingDown`` on, entries only wind the vault down, so that removals always have a number.
    private var isPossibleSoLate: Bool {
        guard entry.number.value >= LogBounds.windingDown else { return true }
        switch entry.payload {
        case .leave, .remove, .accept: return true
        case .rotate: return log.isRotationDue
        case .seal(let seal): return log.canSealLate(seal.author)
        case .rekey: return !(log.members[entry.author]?.hasReplacedKeysLate ?? false)
        case .found, .invite, .join, .role, .revoke, .offer: return false
        }
    }

    // MARK: Members

    private func checkJoin(_ join: Join) throws(EntryRejection) -> [EntryChange] {
        guard log.members[entry.author] == nil else { throw .repeatedID }
        let keys = try unused([join.keys.signing, join.keys.agreement])
        guard let invitation = log.invitations[join.invitation], !invitation.isClosed,
            invitation.joins < invitation.terms.uses
        else { throw .closedInvitation }
        guard invitation.isOpen(at: log.effective(entry.time)) else { throw .expiredInvitation }
        guard log.presentCount < LogBounds.members else { throw .tooManyMembers }
        let verifying = try MembershipLog.verifyingKey(join.keys)
        if !isVerified {
            guard entry.isSigned(by: verifying) else { throw .wrongSignature }
            guard let admission = try? ES256.VerifyingKey(invitation.terms.admissionKey),
                join.admission.isValid(VaultLabel.admission.text(entry.innerText), by: admission)
            else { throw .wrongAdmission }
        }
        let member = VaultMember(
            entry, join.keys, verifying, join.name, log.currentGeneration.number, invitation.terms.role,
            invitation: join.invitation)
        return [.member(member), .joined(join.invitation)] + keys
    }

    private func checkLeave(_ author: VaultMember) throws(EntryRejection) -> [EntryChange] {
        guard author.id != log.owner else { throw .ownerProtected }
        return [.role(author.id, nil), .rotationDue] + closing(author) + cut(author) + withdrawing(author.id)
    }

    private func checkRekey(_ rekey: Rekey, _ author: VaultMember) throws(EntryRejection) -> [EntryChange] {
        guard author.rekeyCount < LogBounds.rekeys else { throw .tooManyKeys }
        let keys = try unused([rekey.keys.signing, rekey.keys.agreement])
        let verifying = try MembershipLog.verifyingKey(rekey.keys)
        guard isVerified || rekey.possession.isValid(VaultLabel.rekey.text(entry.innerText), by: verifying) else {
            throw .wrongPossession
        }
        return [.keys(rekey.keys, verifying), .rotationDue] + closing(author) + cut(author) + keys
    }

    /// The invitations of a member that leaves or may have lost its device: those that it opened, and the one by which
    /// it joined.
    private func closing(_ member: VaultMember) -> [EntryChange] {
        [.closesThoseOf(member.id)] + (member.invitation.map { [.closes($0)] } ?? [])
    }

    private func cut(_ member: VaultMember) -> [EntryChange] { member.role?.writes ?? false ? [.cut(member.id)] : [] }

    private func withdrawing(_ member: MemberID) -> [EntryChange] {
        log.offer?.to == member ? [.offer(nil)] : []
    }

    // MARK: Entries of managers

    private func checkManagers() throws(EntryRejection) -> [EntryChange] {
        switch entry.payload {
        case .invite(let terms): return try checkInvite(terms)
        case .role(let member, let role): return try checkRole(member, role)
        case .remove(let generation, let members): return try checkRemove(generation, members)
        case .rotate(let generation): return try checkGeneration(generation)
        case .revoke(let id):
            guard let invitation = log.invitations[id], !invitation.isClosed, invitation.joins < invitation.terms.uses
            else { throw .closedInvitation }
            return [.closes(id)]
        case .seal(let seal):
            guard log.lastCuts[seal.author] != nil else { throw .nothingToSeal }
            return [.seal(seal)]
        case .offer(let member): return try checkOffer(member)
        case .accept(let number):
            guard let offer = log.offer, offer.number == number, offer.to == entry.author else { throw .noOffer }
            return [.owner, .offer(nil)]
        case .found, .join, .leave, .rekey: throw .notPermitted
        }
    }

    private func checkInvite(_ terms: InvitationTerms) throws(EntryRejection) -> [EntryChange] {
        guard log.invitations[terms.id] == nil else { throw .repeatedID }
        let keys = try unused([terms.admissionKey])
        guard terms.expiry > entry.time, terms.expiry.seconds - entry.time.seconds <= LogBounds.invitationLife else {
            throw .wrongExpiry
        }
        guard log.openInvitations.count < LogBounds.invitations else { throw .tooManyInvitations }
        return [.invitation(VaultInvitation(terms: terms, inviter: entry.author, entry: entry.head))] + keys
    }

    private func checkRole(_ id: MemberID, _ role: Role) throws(EntryRejection) -> [EntryChange] {
        guard let member = log.members[id], let present = member.role else { throw .unknownMember }
        guard present != role else { throw .unchangedRole }
        guard id != log.owner else { throw .ownerProtected }
        guard role < present else { return [.role(id, role)] }
        return [.role(id, role), .closesAll] + (role.writes ? [] : cut(member)) + withdrawing(id)
    }

    private func checkRemove(_ generation: Generation, _ ids: [MemberID]) throws(EntryRejection) -> [EntryChange] {
        var changes = try checkGeneration(generation)
        for id in ids {
            guard let member = log.members[id], member.role != nil else { throw .unknownMember }
            guard id != log.owner else { throw .ownerProtected }
            guard id != entry.author else { throw .ownRemoval }
            changes += [.role(id, nil)] + cut(member) + withdrawing(id)
        }
        return changes
    }

    /// A new generation closes all invitations, because their payloads contain an earlier key.
    private func checkGeneration(_ generation: Generation) throws(EntryRejection) -> [EntryChange] {
        guard generation.number == log.currentGeneration.number.next, log.generation(withKey: generation.keyID) == nil
        else { throw .wrongGeneration }
        return [.generation(generation), .closesAll]
    }

    private func checkOffer(_ member: MemberID?) throws(EntryRejection) -> [EntryChange] {
        guard entry.author == log.owner else { throw .notPermitted }
        guard let member else {
            guard log.offer != nil else { throw .noOffer }
            return [.offer(nil)]
        }
        guard log.members[member]?.role == .manager, member != log.owner else { throw .unknownMember }
        return [.offer(member)]
    }

    /// Within a vault no public key appears twice, for any purpose.
    private func unused(_ keys: [P256.PublicKey]) throws(EntryRejection) -> [EntryChange] {
        guard !keys.contains(where: log.isUsed) else { throw .repeatedKey }
        return keys.map { .usesKey($0) }
    }
}

/// The reason for which an entry is not valid after the entries before it.
public enum EntryRejection: String, Error, Hashable, CaseIterable, Sendable {
    /// The entry belongs to another vault, or its vault is not the hash of the founding entry.
    case wrongVault
    /// The number is not the next one.
    case wrongNumber
    /// The hash of the previous entry is another one: another entry stands at that number.
    case wrongPrevious
    /// The log has no further number.
    case full
    /// So late in the log, no such entry is accepted.
    case windingDown
    /// The author is no member, or no longer.
    case unknownAuthor
    /// The author's role does not permit it.
    case notPermitted
    /// The signature is not the author's.
    case wrongSignature
    /// The id of the member or invitation has been used.
    case repeatedID
    /// A public key has been used, by anyone and for any purpose.
    case repeatedKey
    /// The generation is not the next one, or its key id has been used.
    case wrongGeneration
    /// The concerned member is none, or no longer.
    case unknownMember
    /// The member has this role.
    case unchangedRole
    /// The owner can neither leave nor be lowered or removed.
    case ownerProtected
    /// A manager cannot remove itself. It leaves.
    case ownRemoval
    /// There is no such invitation, or it is closed or used up.
    case closedInvitation
    /// The invitation has expired.
    case expiredInvitation
    /// The invitation would live too long, or not at all.
    case wrongExpiry
    /// The joiner does not have the link, or not its code.
    case wrongAdmission
    /// Too many invitations are open.
    case tooManyInvitations
    /// Too many members are present.
    case tooManyMembers
    /// No entry has cut this author off.
    case nothingToSeal
    /// The offer with this number does not stand, or was made to another member.
    case noOffer
    /// The member has changed its keys too often.
    case tooManyKeys
    /// The new signing key did not sign.
    case wrongPossession
    /// The platform's library failed to sign.
    case library
}

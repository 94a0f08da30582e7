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

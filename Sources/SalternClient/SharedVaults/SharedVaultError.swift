public import Foundation
internal import VaultLog

/// The reason for which an operation on a shared vault failed.
public enum SharedVaultError: Error, Hashable, Sendable {
    /// The server has no shared vaults.
    case notSupported
    /// The text is not `https://HOST/j/ID`.
    case notALink
    /// The part of the link after `#` is missing.
    case noSecret
    /// The link is cut off or changed.
    case brokenLink
    /// The link leads to another server than that of the account.
    case otherServer(String)
    /// The link needs its code.
    case codeRequired
    /// The code, or the secret of the link, is not that of the invitation.
    case wrongCode
    /// The server has no open invitation for the link with this code: the code is wrong, or the invitation was closed,
    /// used up, or has expired.
    case invitationGoneOrWrongCode
    /// The code is not six words of the list.
    case invalidCode
    /// A name is empty, longer than 64 bytes, or has control characters.
    case invalidName
    /// The server has no such open invitation: it is unknown, closed, used up or expired.
    case invitationGone
    /// The server, or another holder of the link, shows another vault than that of the link.
    case wrongVault
    /// The account is a member already.
    case alreadyMember
    /// This device has no such vault.
    case unknownVault
    /// Several vaults have the name.
    case ambiguousName
    /// The vault has no such member.
    case unknownMember
    /// The vault has no such open invitation.
    case unknownInvitation
    /// The role in the vault does not permit it.
    case notPermitted
    /// The owner can neither leave nor be lowered or removed.
    case ownerProtected
    /// The vault was not offered to this account, or no longer.
    case noOffer
    /// The vault has no room for another entry, member or invitation.
    case full
    /// This device does not have the present key. A person can replace it: see
    /// ``SharedVault/rotate(replacingMissingKey:)``.
    case keyMissing
    /// No edits of the member wait for a seal, or another manager has sealed it.
    case nothingToSeal
    /// The list of an earlier seal of the member by this account is missing, and another one would replace it. A sync
    /// can bring it; another manager can seal.
    case listMissing
    /// Nothing is written to this vault: see ``SharedVault/problems``.
    case stopped
    /// Another member uses a later version of the app.
    case updateNeeded
    /// The owner has to confirm the log of a restored database first.
    case recovering
    /// The clock of this device differs from the server's by more than 5 minutes, or one of both is wrong by a day.
    case wrongClock
    /// Other members change the vault at the same time. Repeat the call.
    case busy
    /// The account is the owner of shared vaults: hand them over, or delete them with the account.
    case ownsVaults
    /// An invitation ends after 1 second to 30 days.
    case invalidExpiry
    /// An invitation has 1 to 32 uses.
    case invalidUses
    /// The rules of the log reject the change, for the named reason.
    case rejected(String)

    /// Converts the decision of the log's rules.
    init(_ rejection: EntryRejection) {
        self =
            switch rejection {
            case .notPermitted, .unknownAuthor: .notPermitted
            case .ownerProtected: .ownerProtected
            case .unknownMember: .unknownMember
            case .noOffer: .noOffer
            case .nothingToSeal: .nothingToSeal
            case .full, .windingDown, .tooManyInvitations, .tooManyMembers: .full
            case .closedInvitation, .expiredInvitation: .invitationGone
            case .wrongExpiry: .invalidExpiry
            case .wrongAdmission: .wrongCode
            default: .rejected(rejection.rawValue)
            }
    }
}

extension SharedVaultError: LocalizedError {
    public var errorDescription: String? {
        switch self {
        case .notSupported: "The server has no shared vaults."
        case .notALink: "The text is not the link of an invitation."
        case .noSecret: "The link has no key. Copy the whole link, with the part after #."
        case .brokenLink: "The link is incomplete or was changed. Copy it again."
        case .otherServer(let server): "The link leads to another server: \(server)."
        case .codeRequired: "The invitation has a code. Enter its six words."
        case .wrongCode: "The code, or the key of the link, is not that of the invitation."
        case .invitationGoneOrWrongCode:
            "The code is not that of the invitation, or the invitation was closed, used up, or has expired."
        case .invalidCode: "A code is six words of the list."
        case .invalidName: "A name has 1 to 64 bytes, and no control characters."
        case .invitationGone: "There is no such invitation. It was closed, used up, or has expired."
        case .wrongVault: "The server shows another vault than that of the link. Nothing was joined."
        case .alreadyMember: "This account is a member already."
        case .unknownVault: "There is no such shared vault on this device. Sync first."
        case .ambiguousName: "Several vaults have this name. Use the id."
        case .unknownMember: "The vault has no such member."
        case .unknownInvitation: "The vault has no such open invitation."
        case .notPermitted: "The role in this vault does not permit it."
        case .ownerProtected: "The owner cannot leave, be lowered or removed. Hand the vault over first."
        case .noOffer: "The vault is not offered to this account."
        case .full: "The vault is full. Continue in a new vault."
        case .keyMissing: "This device does not have the vault's key. A manager's device sends it at its next sync."
        case .nothingToSeal: "No edits of this member wait for a seal."
        case .listMissing:
            "The list of an earlier seal of this member is missing. Sync, or let another manager seal the member."
        case .stopped: "Nothing is written to this vault, because of a problem with it."
        case .updateNeeded: "A later version of the app has changed this vault. Update the app."
        case .recovering: "The server was restored from a backup. The owner has to sync first."
        case .wrongClock: "The clock of this device differs from the server's by more than 5 minutes."
        case .busy: "Other members change the vault at the same time. Try again."
        case .ownsVaults: "The account is the owner of shared vaults. Hand them over or delete them first."
        case .invalidExpiry: "An invitation ends after at most 30 days."
        case .invalidUses: "An invitation has 1 to 32 uses."
        case .rejected(let reason): "The rules of the vault reject the change (\(reason))."
        }
    }
}

extension SharedVaultProblem {
    /// An English sentence for users.
    public var sentence: String {
        switch self {
        case .fork(let number):
            "The server shows two histories of this vault from entry \(number) on. Copy the items into a new vault."
        case .anotherHistory: "A member's device has another history of this vault. Compare the words."
        case .keysDue: "Your keys in this vault may be disclosed. A sync after a log-in by password replaces them."
        case .rolledBack: "The server had an earlier state of this vault than this device."
        case .invalidLog:
            "The server's list of changes of this vault is not valid. Compare the words with other members."
        case .missingKey: "This device waits for the vault's key. A manager's device sends it at its next sync."
        case .foreignKeys: "Another device has replaced your keys in this vault. Ask a manager to remove you."
        case .updateNeeded: "A later version of the app has changed this vault. Update the app."
        case .ended: "The server does not list you as a member of this vault any more."
        case .waitsForSeal(let count):
            count == 1
                ? "The edits of one former writer wait for a manager's device that had them. If there is none, a "
                    + "manager can seal them."
                : "The edits of \(count) former writers wait for a manager's device that had them. If there is none, a "
                    + "manager can seal them."
        case .putAside(let count):
            count == 1
                ? "One version does not count: it breaks the rules of the vault."
                : "\(count) versions do not count: they break the rules of the vault."
        case .nearlyFull: "The vault's log is nearly full. Continue in a new vault."
        }
    }
}

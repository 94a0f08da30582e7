public import Foundation
internal import VaultLog

/// The rights of a member of a shared vault.
public enum SharedRole: String, Hashable, Comparable, CaseIterable, Codable, Sendable {
    /// Reads items.
    case reader
    /// Also writes items.
    case writer
    /// Also invites, removes and changes members.
    case manager

    private var rank: Int {
        switch self {
        case .reader: 1
        case .writer: 2
        case .manager: 3
        }
    }

    public static func < (left: SharedRole, right: SharedRole) -> Bool { left.rank < right.rank }
}

/// The latest entry of the log that a member's device has signed.
public struct SeenHead: Hashable, Sendable {
    /// The number of the entry.
    public let number: Int
    /// False when this device's log has another entry, or none, at that number.
    public let isKnown: Bool
}

/// A present member of a shared vault.
public struct SharedMember: Identifiable, Hashable, Sendable {
    /// The id, which is valid in this vault only.
    public let id: MemberID
    /// The name that the member claims. Nil when it cannot be opened yet.
    public let name: String?
    /// The name for lists. Members whose names look alike get the first two of ``words``.
    public let distinctName: String
    /// The rights.
    public let role: SharedRole
    /// The time of the join, by the member's clock.
    public let since: Date
    /// True for the member that is this account.
    public let isOwn: Bool
    /// True for the member whose plan has the vault.
    public let isOwner: Bool
    /// True when, by the server's unsigned statement, the account is locked or deleted. Offer its removal.
    public let isDeparted: Bool
    /// The label of the invitation by which the member joined, for the inviting account only.
    public let label: String?
    /// Four words that the new member and its inviter compare by voice.
    public let words: [String]
    /// The latest head that the member has signed; nil for none.
    public let seen: SeenHead?
}

/// An open invitation to a shared vault.
public struct SharedInvitation: Identifiable, Hashable, Sendable {
    /// The id, which is a part of the link.
    public let id: InvitationID
    /// The role of joiners.
    public let role: SharedRole
    /// The manager that opened it.
    public let inviter: MemberID
    /// The label that this account gave it; nil for none and for invitations of others.
    public let label: String?
    /// The time until which an entry can join.
    public let expiresAt: Date
    /// The maximum number of joins.
    public let uses: Int
    /// The number of joins.
    public let joins: Int
    /// The number of times that the link was opened, by the server's unsigned statement at the last sync of a manager.
    /// Nil before. More openings than joins can mean that others have the link.
    public let openings: Int?
    /// True when the link is useless without its code.
    public let needsCode: Bool
}

/// The choice of a code for an invitation.
public enum InvitationCodeChoice: Hashable, Sendable {
    /// Six random words, which the invited person gets by another way than the link.
    case generated
    /// No code: a malicious server reads the vault as soon as a person opens the link in a browser.
    case none
}

/// A new invitation. The link and the code are shown once.
public struct NewInvitation: Sendable {
    /// The id of the invitation.
    public let id: InvitationID
    /// The link, which is secret.
    public let link: String
    /// The code, six words; nil for an invitation without a code.
    public let code: String?
    /// The time until which an entry can join.
    public let expiresAt: Date
}

extension NewInvitation: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    public var description: String { "NewInvitation(redacted)" }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// The link of an invitation, before anything is fetched.
public struct InvitationAddress: Sendable {
    let link: InvitationLink

    /// Reads a pasted link.
    /// - Throws: ``SharedVaultError/notALink``, ``SharedVaultError/noSecret`` or ``SharedVaultError/brokenLink``.
    public init(_ text: String) throws(VaultError) {
        do throws(InvitationLink.Malformation) { link = try InvitationLink(text) } catch {
            switch error {
            case .notALink: throw .shared(.notALink)
            case .noSecret: throw .shared(.noSecret)
            case .brokenSecret: throw .shared(.brokenLink)
            }
        }
    }

    /// The server, `https://host` or `https://host:port`.
    public var server: String { link.server }
    /// True when the link is useless without its code.
    public var needsCode: Bool { link.hasCode }
}

extension InvitationAddress: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    public var description: String { "InvitationAddress(redacted)" }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// An invitation before the join, verified against the log of the vault.
public struct InvitationPreview: Sendable {
    /// The vault.
    public let vault: SharedVaultID
    /// The name of the vault, by the inviter's statement.
    public let vaultName: String
    /// The name of the inviter, by its own statement.
    public let inviterName: String
    /// The role of joiners.
    public let role: SharedRole
    /// The time until which an entry can join.
    public let expiresAt: Date
    /// The number of present members.
    public let memberCount: Int
}

/// A writer that was removed or lowered, has left, or has other keys, and whose earlier edits wait for a seal: the list
/// of those that count.
public struct UnsealedWriter: Identifiable, Hashable, Sendable {
    /// The id, which is valid in this vault only.
    public let id: MemberID
    /// The name that the writer claims. Nil when it cannot be opened yet.
    public let name: String?
}

/// The edits of an unsealed writer that a seal lets count, for a person to decide.
public struct SealProposal: Sendable {
    /// The writer.
    public let member: MemberID
    let list: SealList
    /// The number of edits that this device did not have before the writer was cut off, and that no earlier list has.
    /// Only the server states that they are not later ones.
    public let unseenCount: Int
    /// False when this device lacks keys of the vault: it omits edits that it cannot open.
    public let isComplete: Bool
    /// The entry that has cut the writer off.
    let cut: EntryNumber

    /// The number of edits that count after the seal.
    public var count: Int { list.edits.count }
}

/// A finding about a shared vault that a person should see.
public enum SharedVaultProblem: Hashable, Sendable {
    /// The server has shown another entry at this number than the known one. Nothing is written any more, and the
    /// finding does not end. Copy the items into a new vault.
    case fork(at: Int)
    /// A member has signed a head that is not in the log. One of both devices sees another history.
    case anotherHistory(MemberID)
    /// The server had fewer entries than a device of this account. The finding stays until
    /// ``SharedVault/acknowledgeProblems()``, as ``invalidLog`` and ``anotherHistory(_:)`` do.
    case rolledBack
    /// The server's entries break the rules of the log. This device keeps the entries before them.
    case invalidLog
    /// This device does not have the present key yet. A manager's device sends it. Nothing is written until then.
    case missingKey
    /// After a device was lost or the data key was rotated, the keys of this member are not replaced yet. The server
    /// accepts one replacement an hour. The next sync of a process that has had the password tries again.
    case keysDue
    /// Another device has replaced the keys of this member. Nothing is written.
    case foreignKeys
    /// The log has an entry of a later version. Nothing is written until the app is updated.
    case updateNeeded
    /// The server does not have this account as a member.
    case ended
    /// Edits of former writers wait for a manager's device that had them. When none is left, a person decides:
    /// ``SharedVault/proposeSeal(of:)``.
    case waitsForSeal(count: Int)
    /// Versions of items do not count: they break the rules of the vault, for example those of a removed member.
    case putAside(count: Int)
    /// The log has few numbers left. Continue in a new vault.
    case nearlyFull
}

extension SharedVaultProblem {
    /// True for a finding after which this device writes nothing to the vault.
    public var stopsWriting: Bool {
        switch self {
        case .fork, .missingKey, .foreignKeys, .updateNeeded, .ended: true
        case .anotherHistory, .rolledBack, .invalidLog, .keysDue, .waitsForSeal, .putAside, .nearlyFull: false
        }
    }
}

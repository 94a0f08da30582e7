internal import HTTPCore
internal import Postgres
internal import VaultLog

/// A vault that several accounts share. Its members, roles and keys follow from a log that clients sign.
enum SharedVault {
    /// Maximum of the sealed parts of an invitation, in bytes.
    static let sealedLimit = 1_024
    /// Maximum of a request with the list of a seal, in bytes of JSON: 130,000 edits.
    static let listLimit = 8_388_608
    /// Maximum number of entries in a request or a reply.
    static let entriesAtOnce = 512
    /// Maximum number of sealed previous keys in a request.
    static let previousKeysAtOnce = 512

    /// The body of a new entry: it has a box for each member, or a list.
    static let entryRule = BodyRule.json(limit: listLimit, values: 3 * LogBounds.members + 64)
    /// The body of entries that are put back.
    static let entriesRule = BodyRule.json(limit: 2_097_152, values: entriesAtOnce + 16)
    /// The body of boxes and previous keys.
    static let boxesRule = BodyRule.json(
        limit: 1_048_576, values: 3 * (LogBounds.members + previousKeysAtOnce) + 64)
}

/// Identifies a vault: the first 16 bytes of the hash of its founding entry.
typealias VaultID = Identifier<SharedVault>

/// Identifies an account inside of one vault.
typealias MemberID = Identifier<VaultMember>

/// Identifies an invitation to a vault.
typealias InvitationID = Identifier<VaultInvitation>

/// The entity of ``MemberID``.
enum VaultMember {}

/// The entity of ``InvitationID``.
enum VaultInvitation {}

extension OwnerID {
    init(_ vault: VaultID) { self.init(vault.uuid) }
}

/// The rights of a member, as stored.
enum VaultRole: Int16, Sendable, Comparable {
    /// Has left or was removed.
    case ended = 0
    case reader = 1
    case writer = 2
    case manager = 3

    static func < (left: VaultRole, right: VaultRole) -> Bool { left.rawValue < right.rawValue }

    /// The name for clients.
    var name: String {
        switch self {
        case .ended: "ended"
        case .reader: "reader"
        case .writer: "writer"
        case .manager: "manager"
        }
    }
}

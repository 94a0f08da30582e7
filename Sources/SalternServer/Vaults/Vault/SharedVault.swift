internal import Postgres

/// A vault that several accounts share. Its members, roles and keys follow from a log that clients sign.
enum SharedVault {
    /// Maximum of a key box in bytes.
    static let boxLimit = 1_024
    /// Maximum body of a request about the log, in bytes of JSON: an entry with a box for each member, the list of a
    /// seal of 60,000 edits, or a third of the longest log.
    static let requestLimit = 4_194_304
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

internal import Cryptography
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

/// Reasons to reject a request about a vault. A vault that the caller is no member of is `Problem.notFound`.
enum VaultProblem: ProblemConvertible {
    /// The member's role does not permit the change.
    case roleTooLow
    /// The items are sealed with another key than that of the present generation.
    case staleGeneration
    /// Items of vaults have the format `saltern-1`, and one request seals all of them with one key.
    case wrongFormat
    /// The log has another head. Contains the entries that the caller does not have.
    case membershipMoved(head: Int64, entries: [[UInt8]])
    /// The bytes are no entry.
    case malformedEntry
    /// The log's rules or its signature forbid the entry.
    case refused(EntryRejection)
    /// The entry's time differs from the server's, in seconds since 1970.
    case clockSkew(seconds: UInt64)
    /// The author has appended too many entries.
    case tooManyEntries(wait: Duration)
    /// The database was restored, and the members put entries back.
    case recovering
    /// Entries are put back only after a restore of the database.
    case notRecovering
    /// Items have changed above the revision that the request names.
    case vaultMoved(revision: Int64)
    /// The writer's head is above the log's, or below the entry of its role and keys or of the generation.
    case headMoved(head: Int64)
    /// The field `Vault-Head` is no number of an entry, or there are two.
    case headMalformed
    /// A change of items has no field `Vault-Head`.
    case headRequired
    /// The list of a seal is missing, malformed or another one.
    case invalidList
    /// The statement about a head is not signed by the member, or its head is not in the log.
    case seenRefused
    /// The claim is not signed by the member.
    case claimRefused
    /// The member has deleted too much in seven days.
    case trashFull
    /// The entry belongs to another route.
    case otherRoute
    /// A box is missing, has another length, or is of no member.
    case invalidBoxes
    /// The account is a member already.
    case alreadyMember
    /// The account owns vaults.
    case ownsVaults
    /// `vaults` has another value than `delete`.
    case unknownVaultChoice

    var problem: Problem {
        switch self {
        case .roleTooLow:
            Problem(.forbidden, "role_too_low", detail: "Your role in the vault does not permit this change.")
        case .staleGeneration:
            Problem(
                .conflict, "stale_generation",
                detail: "The vault has another key. Read its log, seal the items again, and repeat the request.")
        case .wrongFormat:
            Problem(
                .unprocessableContent, "unknown_format",
                detail: "Items of a vault must have the format saltern-1 and one key id.")
        case .membershipMoved(let head, let entries):
            Problem(
                .conflict, "membership_moved",
                detail: "The log has changed: see `entries`. Append to its present head.",
                members: [
                    (name: "head", value: .integer(head)),
                    (name: "entries", value: .array(entries.map { .string(Base64.encodeToString($0)) })),
                ])
        case .malformedEntry:
            Problem(
                .unprocessableContent, "malformed_entry", detail: "`entry` must be an entry of a vault's log in base64."
            )
        case .refused(let reason):
            Problem(
                .unprocessableContent, "entry_refused", detail: "The log's rules forbid the entry: see `reason`.",
                field: "entry", members: [(name: "reason", value: .string(reason.rawValue))])
        case .clockSkew(let seconds):
            Problem(
                .conflict, "clock_skew", detail: "The entry's time differs from the server's by more than 5 minutes.",
                field: "entry", members: [(name: "time", value: .integer(Int64(seconds)))])
        case .tooManyEntries(let wait):
            Problem(
                .tooManyRequests, "too_many_entries",
                detail: "You have appended too many entries. Send the request again after Retry-After.",
                responseFields: ["Retry-After": RetryAfter.seconds(wait)])
        case .recovering:
            Problem(
                .conflict, "recovering",
                detail: "The database was restored. Put missing entries back, and wait for the vault's owner.")
        case .notRecovering:
            Problem(.conflict, "not_recovering", detail: "Entries are put back only after a restore of the database.")
        case .vaultMoved(let revision):
            Problem(
                .conflict, "vault_moved", detail: "Items have changed: read them, and repeat the request.",
                members: [(name: "revision", value: .integer(revision))])
        case .headMoved(let head):
            Problem(
                .conflict, "membership_moved", detail: "The log has changed. Read it, and repeat the request.",
                members: [(name: "head", value: .integer(head))])
        case .headMalformed:
            Problem(
                .badRequest, "malformed_precondition",
                detail: "Vault-Head must be one whole number from 1, without sign and leading zeros.")
        case .headRequired:
            Problem(
                .preconditionRequired, "vault_head_required",
                detail: "Send Vault-Head with the number of the latest entry of the log that you have.")
        case .invalidList:
            Problem(
                .unprocessableContent, "invalid_list",
                detail: "A seal needs the list that its entry names, and other entries have none.", field: "list")
        case .seenRefused:
            Problem(
                .unprocessableContent, "seen_refused",
                detail: "The head is not in the log, or the signature is not the member's.")
        case .claimRefused:
            Problem(
                .unprocessableContent, "claim_refused",
                detail: "The head is not in the log, or the signature is not the member's.")
        case .trashFull:
            Problem(
                .conflict, "trash_full",
                detail: "You have deleted a quarter of the vault's bytes in 7 days. A manager can delete more.")
        case .otherRoute:
            Problem(
                .unprocessableContent, "wrong_kind", detail: "Another route accepts entries of this kind.",
                field: "entry")
        case .invalidBoxes:
            Problem(
                .unprocessableContent, "invalid_boxes",
                detail: "An entry with a new generation needs one box of `limit` bytes for each member.",
                limit: GenerationBox.byteCount)
        case .ownsVaults:
            Problem(
                .conflict, "owns_vaults",
                detail: "The account owns vaults. Hand them over, or send `vaults` with the value `delete`.")
        case .unknownVaultChoice:
            Problem(.unprocessableContent, "invalid_choice", detail: "`vaults` must be `delete`, or omitted.")
        case .alreadyMember:
            Problem(.conflict, "already_member", detail: "The account is a member of the vault.")
        }
    }
}

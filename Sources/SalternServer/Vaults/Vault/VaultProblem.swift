internal import Cryptography
internal import HTTPCore
internal import VaultLog

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
    /// The entry's time differs from the server's.
    case clockSkew
    /// The entry belongs to another route.
    case otherRoute
    /// A box is missing, too long, or of no member.
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
        case .clockSkew:
            Problem(
                .conflict, "clock_skew", detail: "The entry's time differs from the server's by more than 5 minutes.",
                field: "entry")
        case .otherRoute:
            Problem(
                .unprocessableContent, "wrong_kind", detail: "Another route accepts entries of this kind.",
                field: "entry")
        case .invalidBoxes:
            Problem(
                .unprocessableContent, "invalid_boxes",
                detail: "An entry with a new generation needs one box for each member, of at most `limit` bytes.",
                limit: SharedVault.boxLimit)
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

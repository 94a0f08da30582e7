internal import HTTPCore

/// A re-encryption of all items of an account. New contents are staged in batches, and the commit replaces all of them
/// together with the credential.
enum Rotation {
    /// The time for staging and commit, and the time for which a commit can be repeated.
    static let lifetime = Duration.seconds(86_400)
    /// The maximum number of items in one request.
    static let batchLimit = 500
    /// Maximum body of a request that stages items, in bytes of JSON: the largest item of any plan in base64 with line
    /// breaks, and other members.
    static let requestLimit = 24 * 1_048_576
    /// Maximum number of JSON values in it: all members of as many items, and a few others.
    static let valueLimit = batchLimit * 8 + 64
    /// Deadline of a commit. 10,000 items take seconds; the gigabytes of a large plan take minutes.
    static let commitDeadline = Duration.seconds(600)
    /// Deadline of removing staged items.
    static let discardDeadline = Duration.seconds(120)
}

/// Identifies a rotation.
typealias RotationID = Identifier<Rotation>

/// Reasons to reject a step of a rotation.
enum RotationProblem: ProblemConvertible {
    /// The rotation is committed and accepts no further items.
    case committed
    /// Items are not staged, or have changed since. Nothing was changed.
    case incomplete(missing: [ItemID], changed: [ItemID])
    /// A batch names an item twice. Contains the index of the second.
    case duplicateIdentifier(index: Int)

    var problem: Problem {
        switch self {
        case .committed:
            Problem(.conflict, "rotation_committed", detail: "The rotation was committed. Start another one.")
        case .incomplete(let missing, let changed):
            Problem(
                .conflict, "rotation_incomplete",
                detail:
                    "Some items have changed: see `items`. Stage their present content, and commit again. Nothing was changed.",
                members: [
                    (name: "missing", value: .array(missing.map { .string($0.description) })),
                    (name: "changed", value: .array(changed.map { .string($0.description) })),
                ])
        case .duplicateIdentifier(let index):
            Problem(
                .unprocessableContent, "duplicate_id",
                detail: "`operations` names an item more than once. Send each item once.",
                field: "items[\(index)].id")
        }
    }
}

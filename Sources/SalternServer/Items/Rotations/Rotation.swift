internal import HTTPCore

/// A re-encryption of all items of an account that is under way: new contents are staged one batch after another, and
/// the commit swaps all of them together with the credential.
enum Rotation {
    /// How long there is to stage and to commit, and how long the reply to a commit can be asked for again.
    static let lifetime = Duration.seconds(86_400)
    /// How many items one request may stage.
    static let batchLimit = 500
    /// The longest body, in bytes of JSON, of a request that stages items: the largest item that any plan can hold, in
    /// base64 with line breaks, and room for the rest.
    static let requestLimit = 24 * 1_048_576
    /// How many values it may have: those of as many items with all their members, and room for a few.
    static let valueLimit = batchLimit * 8 + 64
    /// How long a commit may take. One of 10,000 items takes seconds; one of the gigabytes of a large plan, minutes.
    static let commitDeadline = Duration.seconds(600)
    /// How long removing what is staged may take.
    static let discardDeadline = Duration.seconds(120)
}

/// Names a rotation.
typealias RotationID = Identifier<Rotation>

/// Why a rotation does not go on.
enum RotationProblem: ProblemConvertible {
    /// It was committed: nothing can be staged any more.
    case committed
    /// Items that are not staged, and items that were changed since they were; nothing was changed.
    case incomplete(missing: [ItemID], changed: [ItemID])
    /// An item is named twice in a batch; the index of the second.
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

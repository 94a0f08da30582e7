internal import HTTPCore

/// Reasons to reject a change of an item.
enum ItemProblem: ProblemConvertible {
    /// The precondition fails. Contains the present item or tombstone, if any.
    case preconditionFailed(current: ItemInReply?)
    /// The item is deleted and its content removed.
    case gone
    /// The change would exceed a limit of the account's plan.
    case quotaExceeded(limit: String, allowed: Int64, used: Int64)

    var problem: Problem {
        switch self {
        case .preconditionFailed(let current):
            var problem = Problem(
                .preconditionFailed, "precondition_failed",
                detail: "The item does not match the precondition: see `current`.")
            guard let current else {
                problem.members = [(name: "current", value: .null)]
                return problem
            }
            let item = current.found.item
            if item.content != nil { problem.responseFields = ["ETag": item.entityTag] }
            if current.found.isWhole {
                problem.capacity = item.jsonCapacity
                problem.writeMembers = { writer in writer.object("current") { item.write(to: &$0) } }
            } else {
                problem.streamMembers = { writer, body in
                    var output = JSONOutput(body, after: writer)
                    output.writer.name("current")
                    try await current.write(to: &output)
                    output.writer.endObject()
                    try await output.flush()
                }
            }
            return problem
        case .gone:
            return Problem(.gone, "gone", detail: "The item is deleted, and its content has been removed.")
        case .quotaExceeded(let limit, let allowed, let used):
            return Problem(
                .forbidden, "quota_exceeded", detail: "The plan's limit is reached: see `limit`, `allowed` and `used`.",
                members: [
                    (name: "limit", value: .string(limit)), (name: "allowed", value: .integer(allowed)),
                    (name: "used", value: .integer(used)),
                ])
        }
    }
}

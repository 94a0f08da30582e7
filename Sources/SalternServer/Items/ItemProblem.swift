internal import HTTPCore

/// Why a change of an item did not happen.
enum ItemProblem: ProblemConvertible {
    /// The precondition does not hold; what is there now, if anything ever was.
    case preconditionFailed(current: Item?)
    /// The item is deleted, and what it held is not kept any more.
    case gone
    /// The change would exceed a limit of the account's plan.
    case quotaExceeded(limit: String, allowed: Int64, used: Int64)

    var problem: Problem {
        switch self {
        case .preconditionFailed(let current):
            var problem = Problem(
                .preconditionFailed, "precondition_failed", detail: "The item is not what the precondition says.")
            problem.members = [(name: "current", value: current.map(JSONValue.init(item:)) ?? .null)]
            if let current, current.content != nil { problem.responseFields = ["ETag": current.entityTag] }
            return problem
        case .gone:
            return Problem(.gone, "gone", detail: "The item is deleted, and what it held is not kept any more.")
        case .quotaExceeded(let limit, let allowed, let used):
            return Problem(
                .forbidden, "quota_exceeded", detail: "The account's plan allows no more.",
                members: [
                    (name: "limit", value: .string(limit)), (name: "allowed", value: .integer(allowed)),
                    (name: "used", value: .integer(used)),
                ])
        }
    }
}

internal import HTTPCore

/// Reasons to reject a share's creation, change or view. A missing share is `Problem.notFound` for any reason.
enum ShareProblem: ProblemConvertible {
    case wrongSaltLength
    /// The text is not a time of RFC 3339.
    case notATime
    /// The end is in the past.
    case endHasPassed
    /// A share without an account is too long.
    case anonymousTooLong
    /// The life of a share without an account is too long or unlimited.
    case anonymousNeedsEnd
    /// The limit of shares without an account is reached, or they are disabled.
    case anonymousClosed
    /// A browser or a proxy prefetches. 403, because monitoring would count 503 as a failure of the server.
    case prefetch

    var problem: Problem {
        switch self {
        case .wrongSaltLength:
            Problem(
                .unprocessableContent, "wrong_salt_length", detail: "The salt must have 8 to 32 bytes.")
        case .notATime:
            Problem(
                .unprocessableContent, "not_a_time",
                detail: "The time must be RFC 3339 with an offset or Z, for example 2026-02-01T12:30:00Z.")
        case .endHasPassed:
            Problem(.unprocessableContent, "time_has_passed", detail: "The time must be in the future.")
        case .anonymousTooLong:
            Problem(
                .unprocessableContent, "too_long",
                detail: "`sealed` of a share without an account has more bytes than `limit`.",
                field: "sealed", limit: SharePolicy.anonymousByteLimit)
        case .anonymousNeedsEnd:
            Problem(
                .unprocessableContent, "expiry_needed",
                detail: "`expiresAt` of a share without an account must be within 7 days.", field: "expiresAt")
        case .anonymousClosed:
            Problem(
                .forbidden, "anonymous_shares_closed",
                detail: "The limit of shares without an account is reached. Try again later, or log in.")
        case .prefetch:
            Problem(
                .forbidden, "prefetch_refused",
                detail: "A share cannot be prefetched, because that could use up a view.")
        }
    }
}

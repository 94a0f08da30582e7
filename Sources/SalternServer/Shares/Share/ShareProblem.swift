internal import HTTPCore

/// Why a share was not created, changed or opened. That there is none is ``Problem/notFound``, whatever the reason.
enum ShareProblem: ProblemConvertible {
    case wrongSaltLength
    /// The text is not RFC 3339 in UTC.
    case notATime
    /// The share would have ended before it began.
    case endHasPassed
    /// Somebody without an account wants to share more than that allows.
    case anonymousTooLong
    /// Somebody without an account wants to share for longer than that allows, or for ever.
    case anonymousNeedsEnd
    /// There are too many shares of people without an account, or there shall be none any more.
    case anonymousClosed
    /// A browser or a proxy prefetches. 403 and not 503: monitoring must not count it as a fault of the server.
    case prefetch

    var problem: Problem {
        switch self {
        case .wrongSaltLength:
            Problem(
                .unprocessableContent, "wrong_salt_length", detail: "The salt must have 8 to 32 bytes.")
        case .notATime:
            Problem(
                .unprocessableContent, "not_a_time",
                detail: "The time must be RFC 3339 in UTC, for example 2026-02-01T12:30:00Z.")
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

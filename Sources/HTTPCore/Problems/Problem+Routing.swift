extension Problem {
    /// 404 `not_found`: the same for a path that leads nowhere and for a thing that is not there.
    public static var notFound: Problem {
        Problem(.notFound, "not_found", detail: "The resource does not exist.")
    }

    /// 405 `method_not_allowed` with the `Allow` field.
    public static func methodNotAllowed(allowed: [HTTPMethod]) -> Problem {
        Problem(
            .methodNotAllowed, "method_not_allowed", detail: "The resource does not support this method: see Allow.",
            responseFields: ["Allow": allowed.map(\.name).joined(separator: ", ")])
    }

    /// 500 `internal_error`, which says nothing about the cause.
    public static var internalError: Problem {
        Problem(.internalServerError, "internal_error", detail: "The server failed. Try the request again.")
    }
}

internal import HTTPCore
internal import Postgres

/// The reason why a request gets no token.
enum TokenProblem: ProblemConvertible {
    /// The server has no issuer.
    case notOffered
    case unknownAudience

    var problem: Problem {
        switch self {
        case .notOffered:
            Problem(.notFound, "tokens_not_offered", detail: "This server issues no identity tokens.")
        case .unknownAudience:
            Problem(
                .unprocessableContent, "unknown_audience", detail: "This server has no audience of this name.",
                field: "audience")
        }
    }
}

/// Reports that the server cannot sign or inspect tokens until its operator intervenes.
enum TokensUnavailable: OperatorProblem {
    /// No master key opens the pairwise key, or the server could not store one when it started.
    case pairwiseKey
    case signature

    func write(to log: Log, requestID: RequestID) {
        let reason =
            switch self {
            case .pairwiseKey: "the pairwise key cannot be opened with the master key"
            case .signature: "the token cannot be signed"
            }
        log.write(.error, "tokens_unavailable", ["requestId": requestID, "error": OperatorText(reason)])
    }

    var problem: Problem {
        Problem(
            .serviceUnavailable, "tokens_unavailable", detail: "The server cannot issue or inspect tokens now.",
            responseFields: ["Retry-After": "60"])
    }
}

internal import HTTPCore
internal import Postgres
internal import Synchronization

/// `POST /v1/account/export`: streams all data of the caller's account as lines of JSON (`application/x-ndjson`).
struct ExportAccount: AccountEndpoint {
    private let service: String
    private let running: RunningExports
    private let proofs: ProofReader

    init(_ parts: Dependencies) {
        proofs = ProofReader(parts, for: .exportAccount)
        service = parts.configuration.name
        running = parts.nodeState.exports
    }

    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let proven = try await authorization.prove(proofs.read(request))
        let place = try running.take(proven.accountID)
        try await authorization.change(as: proven) { transaction in
            try await transaction.note(
                RecordSecurityEvent(accountID: proven.accountID, kind: .exported, now: proven.now))
        }
        let export = AccountExport(
            reader: authorization.reader,
            head: AccountExport.Head(service: service, exportedAt: proven.now),
            credential: AccountExport.Credential(
                iterations: proven.kdfIterations, revision: proven.credentialRevision))
        return Response(
            status: .ok, fields: ["Content-Type": "application/x-ndjson"],
            body: .stream(
                ResponseStream(isOpenEnded: false) { writer in
                    defer { withExtendedLifetime(place) {} }
                    try await export.write(to: writer)
                }))
    }
}

/// Counts the running exports of each account on a node. An export holds a page in memory while its client reads, so
/// each account has a limit.
final class RunningExports: Sendable {
    private let counts = Mutex<[AccountID: Int]>([:])

    /// Reserves a slot until the result is released.
    ///
    /// - Throws: ``TooManyExports``.
    func take(_ account: AccountID) throws(TooManyExports) -> Place {
        let isFree = counts.withLock { counts in
            guard counts[account, default: 0] < TooManyExports.limit else { return false }
            counts[account, default: 0] += 1
            return true
        }
        guard isFree else { throw TooManyExports() }
        return Place(of: account, in: self)
    }

    /// The slot of one export.
    final class Place: Sendable {
        private let account: AccountID
        private let exports: RunningExports

        fileprivate init(of account: AccountID, in exports: RunningExports) {
            self.account = account
            self.exports = exports
        }

        deinit {
            exports.counts.withLock { counts in
                let left = counts[account, default: 1] - 1
                counts[account] = left == 0 ? nil : left
            }
        }
    }
}

/// The error of an account whose running exports have reached the limit.
struct TooManyExports: ProblemConvertible {
    /// The limit of simultaneous exports of an account on a node.
    static let limit = 2

    var problem: Problem {
        Problem(
            .tooManyRequests, "too_many_exports",
            detail: "Another export of this account is running. Try again after Retry-After.", limit: Self.limit,
            responseFields: ["Retry-After": "30"])
    }
}

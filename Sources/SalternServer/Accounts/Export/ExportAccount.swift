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

/// Exports all data of an account as lines of JSON. ``write(to:)`` has the order.
///
/// Records are read in pages by key while the export is sent, and never in a transaction that would wait for the
/// client. A record that changes meanwhile is exported once, in its state before or after the change.
struct AccountExport: Sendable {
    let reader: AccountReader
    let head: Head
    let credential: Credential

    /// The first line.
    struct Head: ExportedRecord {
        let service: String
        let exportedAt: Timestamp

        let type = "export"

        /// The format of the lines. It increases with each incompatible change.
        private static let version = 1

        /// Stored members that the export omits, because they grant access or help to guess secrets.
        private static let withheld = [
            "credential.verifier", "recovery.verifier", "session.tokenHash", "secondFactor.secret",
            "secondFactor.recoveryCodeHashes", "passkey.unlockKey", "passkey.unlockBox", "share.manageTokenHash",
            "vaultInvitation",
        ]

        func write(to writer: inout JSONWriter) {
            writer.member("version", Self.version)
            writer.member("service", service)
            writer.member("exportedAt", exportedAt)
            writer.array("withheld") { writer in
                for name in Self.withheld { writer.string(name) }
            }
        }
    }

    /// The credential at the start of the export. A change of it by another session ends the export.
    struct Credential: ExportedRecord {
        let iterations: Int32
        let revision: Int64

        let type = "credential"

        func write(to writer: inout JSONWriter) {
            writer.object("kdf") { writer in
                writer.member("algorithm", KDFPolicy.algorithm)
                writer.member("iterations", Int(iterations))
            }
            writer.member("revision", revision)
        }
    }

    /// Writes all lines. The last one has the number of each kind.
    ///
    /// - Throws: `ResponseStreamEnded` if the client or the session is gone, or a `PostgresError`. The output then
    ///   lacks the last line.
    func write(to body: any ResponseBodyWriter) async throws {
        var output = ExportOutput(body)
        try await output.write(CollectionOfOne(head))
        try await output.write(try await reader.read(ExportAccountRow()))
        try await output.write(CollectionOfOne(credential))
        try await output.write(try await reader.read(ExportKeyring()))
        try await output.write(try await reader.read(ExportRecovery()))
        try await output.write(try await reader.read(ExportKeptKeyrings()))
        try await output.write(try await reader.read(ExportSecondFactor()))
        try await output.write(try await reader.read(ExportPasskeys()))
        try await output.write(try await reader.read(ExportReceipt()))
        try await output.write(try await reader.read(ExportInvites()))
        let memberships = try await reader.read(ExportMemberships())
        try await output.write(memberships)
        try await pages(ExportSessions.self, &output)
        try await pages(ExportSecurityEvents.self, &output)
        try await pages(ExportItems.self, &output)
        try await pages(ExportDeletedContents.self, &output)
        try await pages(ExportVersions.self, &output)
        try await pages(ExportRotations.self, &output)
        try await pages(ExportStagedItems.self, &output)
        try await shares(&output)
        for membership in memberships where membership.isOwner {
            try await VaultExport(reader: reader).write(membership.vaultID, to: &output)
        }
        try await output.end()
    }

    /// Writes shares one at a time: their list and their sealed bytes are on different nodes of a distributed database.
    private func shares(_ output: inout ExportOutput) async throws {
        var last: ShareID?
        while true {
            let ids = try await reader.read(ExportShareIDs(after: last))
            if ids.isEmpty { return }
            for id in ids { try await output.write(try await reader.read(ExportShare(id: id))) }
            last = ids.last
        }
    }

    private func pages<Page: ExportedPage>(_ type: Page.Type, _ output: inout ExportOutput) async throws {
        var key: Page.Key?
        while true {
            let rows = try await reader.read(Page(after: key))
            guard let last = rows.last else { return }
            try await output.write(rows)
            key = Page.key(of: last)
        }
    }
}

/// The identifiers of the account's shares, in pages.
struct ExportShareIDs: AccountRead {
    typealias Row = ShareID

    let after: ShareID?

    static let sql: AccountSQL<Self> = """
        SELECT h.share_id FROM saltern.account_shares h
        WHERE h.account_id = \(.account) AND h.share_id > coalesce(\(\.after)::bytea, '')
        ORDER BY h.share_id LIMIT \(ExportLimits.rows)
        """
}

/// One share of the account with its sealed bytes, without the manage token's hash.
struct ExportShare: AccountRead {
    let id: ShareID

    struct Row: ExportedRecord {
        let header: ShareHeader
        let salt: [UInt8]
        let iterations: Int32
        let sealed: [UInt8]

        let type = "share"

        func write(to writer: inout JSONWriter) {
            header.write(to: &writer)
            writer.member("salt", base64: salt)
            writer.member("iterations", Int(iterations))
            writer.member("sealed", base64: sealed)
        }
    }

    static let sql: AccountSQL<Self> = """
        SELECT \(ShareHeader.columns), s.salt, s.iterations, s.sealed FROM saltern.shares s
        WHERE s.share_id = \(\.id) AND s.owner_account = \(.account)
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row {
        Row(
            header: try ShareHeader(row: &row), salt: try row.next(), iterations: try row.next(),
            sealed: try row.next())
    }
}

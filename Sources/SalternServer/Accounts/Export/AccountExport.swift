internal import HTTPCore
internal import Postgres

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

internal import HTTPCore
internal import Postgres

/// Everything that the server holds about an account, as lines of JSON. ``write(to:)`` shows the order.
///
/// Each record is read when it is its turn, in pages by key and never in a transaction that would wait for the client:
/// a record that changes meanwhile is there once, as it was or as it is.
struct AccountExport: Sendable {
    let reader: AccountReader
    let head: Head
    let credential: Credential

    /// The first line.
    struct Head: ExportedRecord {
        let service: String
        let exportedAt: Timestamp

        let type = "export"

        /// Of the form of the lines. It moves when somebody who reads them has to know.
        private static let version = 1

        /// What is stored and not shown: it opens things, or shows who else could.
        private static let withheld = [
            "credential.verifier", "recovery.verifier", "session.tokenHash", "secondFactor.secret",
            "secondFactor.recoveryCodeHashes", "share.manageTokenHash",
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

    /// How the person logs in, as it was when the export began: the export ends with it.
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

    /// Writes all lines; the last one has the numbers of the others.
    /// - Throws: `ResponseStreamEnded` when client or session have gone, or a `PostgresError`. What was written then
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
        try await output.write(try await reader.read(ExportReceipt()))
        try await output.write(try await reader.read(ExportInvites()))
        try await pages(ExportSessions.self, &output)
        try await pages(ExportSecurityEvents.self, &output)
        try await pages(ExportItems.self, &output)
        try await pages(ExportDeletedContents.self, &output)
        try await pages(ExportVersions.self, &output)
        try await pages(ExportRotations.self, &output)
        try await pages(ExportStagedItems.self, &output)
        try await shares(&output)
        try await output.end()
    }

    /// One by one: their list and their sealed bytes are on different nodes of a distributed database.
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

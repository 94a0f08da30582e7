internal import HTTPCore
internal import Postgres

/// A vault that the account owns.
struct ExportVault: AccountRead {
    let id: VaultID

    struct Row: ExportedRecord {
        let id: VaultID
        let createdAt: Timestamp
        let revision: Int64
        let purgedRevision: Int64
        let headNumber: Int64
        let headHash: [UInt8]
        let items: Int64
        let bytes: Int64

        let type = "vault"

        func write(to writer: inout JSONWriter) {
            writer.member("id", id)
            writer.member("createdAt", createdAt)
            writer.member("revision", revision)
            writer.member("purgedRevision", purgedRevision)
            writer.object("head") { writer in
                writer.member("number", headNumber)
                writer.member("hash", base64: headHash)
            }
            writer.object("usage") { writer in
                writer.member("items", items)
                writer.member("bytes", bytes)
            }
        }
    }

    static let sql: AccountSQL<Self> = """
        SELECT a.vault_id, a.created_at, a.revision, a.purged_revision, a.head_number, a.head_hash, a.item_count,
            a.item_bytes
        FROM saltern.vaults a WHERE a.vault_id = \(\.id) AND a.owner_account = \(.account)
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

/// A record of a vault: its type begins with `vault`, and its first member is the vault's id.
struct VaultRecord<Record: ExportedRecord>: ExportedRecord {
    let vaultID: VaultID
    let record: Record

    var type: String { "vault" + record.type.prefix(1).uppercased() + record.type.dropFirst() }

    func write(to writer: inout JSONWriter) {
        writer.member("vault", vaultID)
        record.write(to: &writer)
    }
}

/// Writes the vaults that an account owns, with their logs, keys and items.
struct VaultExport {
    let reader: AccountReader

    /// Writes one vault. Writes nothing if the account no longer owns it.
    func write(_ vaultID: VaultID, to output: inout ExportOutput) async throws {
        let vaults = try await reader.read(ExportVault(id: vaultID))
        if vaults.isEmpty { return }
        try await output.write(vaults)
        let members = try await reader.read(FindMembers(vaultID: vaultID), in: vaultID)
        try await write(members.map(Member.init), of: vaultID, to: &output)
        let boxes = try await reader.read(
            FindBoxes(vaultID: vaultID, accountID: reader.session.accountID), in: vaultID)
        try await write(boxes.map(OwnBox.init), of: vaultID, to: &output)
        let keys = try await reader.read(FindPreviousKeys(vaultID: vaultID), in: vaultID)
        try await write(keys.map(PreviousKey.init), of: vaultID, to: &output)
        for number in try await reader.read(FindSeals(vaultID: vaultID), in: vaultID) {
            let lists = try await reader.read(FindSealList(vaultID: vaultID, number: number), in: vaultID)
            try await write(lists.map { SealedList(number: number, list: $0) }, of: vaultID, to: &output)
        }
        try await entries(of: vaultID, to: &output)
        try await pages(ExportItems.self, of: vaultID, to: &output)
        try await pages(ExportDeletedContents.self, of: vaultID, to: &output)
        try await pages(ExportVersions.self, of: vaultID, to: &output)
    }

    private struct Member: ExportedRecord {
        let member: FindMembers.Row
        let type = "member"

        func write(to writer: inout JSONWriter) {
            writer.member("id", member.id)
            writer.member("departed", member.holder == nil)
        }
    }

    /// The owner's own key box.
    private struct OwnBox: ExportedRecord {
        let box: FindBoxes.Row
        let type = "keyBox"

        func write(to writer: inout JSONWriter) {
            writer.member("generation", box.generation)
            writer.member("box", base64: box.box)
        }
    }

    private struct PreviousKey: ExportedRecord {
        let key: FindPreviousKeys.Row
        let type = "previousKey"

        func write(to writer: inout JSONWriter) {
            writer.member("generation", key.generation)
            writer.member("key", base64: key.key)
        }
    }

    private struct SealedList: ExportedRecord {
        let number: Int64
        let list: [UInt8]
        let type = "seal"

        func write(to writer: inout JSONWriter) {
            writer.member("number", number)
            writer.member("list", base64: list)
        }
    }

    private struct LogEntry: ExportedRecord {
        let number: Int64
        let entry: [UInt8]
        let type = "entry"

        func write(to writer: inout JSONWriter) {
            writer.member("number", number)
            writer.member("entry", base64: entry)
        }
    }

    private func entries(of vaultID: VaultID, to output: inout ExportOutput) async throws {
        var last: Int64 = 0
        while true {
            let entries = try await reader.read(
                FindEntries(vaultID: vaultID, after: last, limit: ExportLimits.rows), in: vaultID)
            if entries.isEmpty { return }
            // A log has no gaps.
            let first = last + 1
            try await write(
                entries.enumerated().map { LogEntry(number: first + Int64($0), entry: $1) }, of: vaultID, to: &output)
            last += Int64(entries.count)
        }
    }

    private func pages<Page: ExportedPage & ItemRead>(
        _ type: Page.Type, of vaultID: VaultID, to output: inout ExportOutput
    ) async throws {
        var key: Page.Key?
        while true {
            let rows = try await reader.read(
                OwnedByVault(vaultID: vaultID, read: Page(after: key)), in: vaultID)
            guard let last = rows.last else { return }
            try await write(rows, of: vaultID, to: &output)
            key = Page.key(of: last)
        }
    }

    private func write<Record: ExportedRecord>(
        _ records: [Record], of vaultID: VaultID, to output: inout ExportOutput
    ) async throws {
        try await output.write(records.map { VaultRecord(vaultID: vaultID, record: $0) })
    }
}

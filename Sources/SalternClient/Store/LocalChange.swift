internal import Cryptography

/// An edit of the user that the server has not confirmed.
struct LocalChange: Hashable, Sendable {
    /// The content of the last request that was not confirmed.
    enum Sent: Hashable, Sendable {
        case content(digest: [UInt8])
        case deletion
    }

    var id: ItemID
    /// The position in the order of sending.
    var sequence: Int64
    /// The revision that was changed; nil for an item that the server does not have.
    var base: Revision?
    /// The new content; nil for a deletion.
    var content: ItemContent?
    var edit: UInt64
    /// The content before the change, for a merge.
    var baseContent: (title: [UInt8]?, body: [UInt8])?
    var sent: Sent?
    /// The sequence of the first of the edits that were stored together; nil for a single one.
    var together: Int64?

    static func == (left: LocalChange, right: LocalChange) -> Bool {
        (left.id, left.sequence, left.base, left.content, left.edit) == (
            right.id, right.sequence, right.base, right.content, right.edit
        ) && left.sent == right.sent
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(id)
        hasher.combine(sequence)
    }
}

extension Store {
    private static let columns =
        "id, sequence, base, collection, format, iterations, title, body, edit, base_title, base_body, sent, together"

    /// Returns the unsent change of an item.
    func change(_ id: ItemID) throws -> LocalChange? {
        try database.rows(
            "SELECT \(Self.columns) FROM changes WHERE id = ?", .blob(id.bytes), decode: Self.change
        ).first
    }

    /// Returns the oldest changes: as many as fit, at least one. Edits that were stored together are separated only if
    /// a batch has no room for all of them.
    func changes(limit: Int, byteLimit: Int, after sequence: Int64 = 0) throws -> [LocalChange] {
        let candidates = try database.rows(
            "SELECT \(Self.columns) FROM changes WHERE sequence > ? ORDER BY sequence LIMIT ?", .integer(sequence),
            .integer(Int64(limit) + 1), decode: Self.change)
        var bytes = 0
        let count = candidates.prefix(limit).enumerated().prefix { index, change in
            bytes += 256 + ((change.content?.body.bytes.count ?? 0) + (change.content?.title?.bytes.count ?? 0)) * 4 / 3
            return index == 0 || bytes <= byteLimit
        }.count
        guard count > 0, count < candidates.count, let group = candidates[count].together,
            candidates[0].together != group
        else { return Array(candidates.prefix(count)) }
        return candidates.prefix(count).filter { $0.together != group }
    }

    func nextSequence() throws -> Int64 {
        try database.rows("SELECT coalesce(max(sequence), 0) + 1 FROM changes") { $0.integer(0) ?? 1 }.first ?? 1
    }

    func changeCount() throws -> Int {
        Int(try database.rows("SELECT count(*) FROM changes") { $0.integer(0) ?? 0 }.first ?? 0)
    }

    /// Returns the items with changes, the oldest change first.
    func changedIDs(limit: Int64) throws -> [ItemID] {
        try database.rows("SELECT id FROM changes ORDER BY sequence LIMIT ?", .integer(limit)) { try Self.id($0, 0) }
    }

    /// Calls `body` with every change, in the order of their sequence, in pages. `body` may write or remove its change.
    func forEachChange(_ body: (LocalChange) throws -> Void) throws {
        var last: Int64 = 0
        while true {
            let changes = try changes(limit: 100, byteLimit: 8 << 20, after: last)
            guard let end = changes.last else { return }
            last = end.sequence
            for change in changes { try body(change) }
        }
    }

    /// Records an edit of the user. It replaces an earlier change of the item, whose base it keeps.
    /// - Parameters:
    ///   - opened: The body of the content, if it has been opened.
    ///   - isSame: True for the same content in other bytes. The replaced version is then not kept.
    func record(
        _ id: ItemID, content: ItemContent?, edit: UInt64, opened: SecureBytes? = nil, isSame: Bool = false
    ) throws {
        let earlier = try change(id)
        let item = try item(id)
        if !isSame, content != nil, earlier == nil, let item, item.content != content {
            try keepReplaced(
                id, item.content, edit: item.edit, revision: item.revision, judgedAt: item.judgedAt)
        }
        let base = earlier?.base ?? (earlier == nil ? item?.revision : nil)
        let baseContent =
            earlier?.baseContent
            ?? (earlier == nil ? item.map { ($0.content.title?.bytes, $0.content.body.bytes) } : nil)
        try write(
            LocalChange(
                id: id, sequence: try nextSequence(), base: base, content: content, edit: edit,
                baseContent: baseContent, sent: earlier?.sent, together: group), opened: opened, isSame: isSame)
    }

    /// Replaces the item's earlier change.
    /// - Parameter isSame: True for the same content in other bytes. The earlier change is then not kept.
    func write(_ change: LocalChange, opened: SecureBytes? = nil, isSame: Bool = false) throws {
        let content = change.content
        if !isSame, content != nil, let known = try self.change(change.id), let before = known.content,
            before != content
        {
            try keepReplaced(change.id, before, edit: known.edit)
        }
        if let content { try noteVersion(change.id, content.body.bytes, opened: opened) }
        if let base = change.baseContent { try noteVersion(change.id, base.body) }
        try database.execute("DELETE FROM changes WHERE id = ?", .blob(change.id.bytes))
        try database.execute(
            "INSERT INTO changes (\(Self.columns)) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            .blob(change.id.bytes),
            .integer(change.sequence), .optional(change.base?.number), .optional(content?.collection),
            .optional(content?.format), .optional(content?.iterations.map(Int64.init)),
            .optional(content?.title?.bytes), .optional(content?.body.bytes),
            .integer(Int64(bitPattern: change.edit)), .optional(change.baseContent?.title),
            .optional(change.baseContent?.body), .optional(change.sent?.stored), .optional(change.together))
    }

    /// Removes the change: nothing of the item is left to send.
    func forgetChange(_ id: ItemID) throws {
        try database.execute("DELETE FROM changes WHERE id = ?", .blob(id.bytes))
    }

    /// Records the content that is about to be sent. From then on the server may return it.
    func markSent(_ changes: [LocalChange]) throws {
        for change in changes {
            try database.execute(
                "UPDATE changes SET sent = ? WHERE id = ? AND sequence = ?", .blob(change.sending.stored),
                .blob(change.id.bytes), .integer(change.sequence))
        }
    }

    private static func change(_ row: SQLiteRow) throws -> LocalChange {
        guard let sequence = row.integer(1), let edit = row.integer(8) else { throw StoreError.damaged }
        var content: ItemContent?
        if let collection = row.text(3), let format = row.text(4), let body = row.blob(7) {
            content = ItemContent(
                collection: collection, format: format, iterations: row.integer(5).map { Int($0) }, title: row.blob(6),
                body: body)
        }
        return LocalChange(
            id: try id(row, 0), sequence: sequence, base: row.integer(2).map(Revision.init), content: content,
            edit: UInt64(bitPattern: edit), baseContent: row.blob(10).map { (row.blob(9), $0) },
            sent: row.blob(11).map(LocalChange.Sent.init(stored:)), together: row.integer(12))
    }
}

extension LocalChange {
    /// The content that a request with this change sends.
    var sending: Sent { content.map { .content(digest: $0.digest) } ?? .deletion }

    /// True when the server may have received this change.
    var wasSent: Bool { sent == sending }
}

extension LocalChange.Sent {
    private static let zeros = [UInt8](repeating: 0, count: 32)

    fileprivate var stored: [UInt8] {
        switch self {
        case .content(let digest): digest
        case .deletion: Self.zeros
        }
    }

    fileprivate init(stored: [UInt8]) {
        self = stored == Self.zeros ? .deletion : .content(digest: stored)
    }
}

extension ItemContent {
    /// SHA-256 of everything that the server compares to decide if two contents are equal.
    var digest: [UInt8] {
        var hash = SHA256.Incremental()
        for part in [
            Array(collection.utf8), Array(format.utf8), Array(String(iterations ?? -1).utf8), title?.bytes ?? [],
            [title == nil ? 0 : 1], body.bytes,
        ] {
            hash.update(UInt64(part.count).bigEndianBytes)
            hash.update(part)
        }
        return hash.finalize().bytes
    }
}

/// The tables of one owner of items in the database of a store.
///
/// Statements contain the names of the account's tables. The tables of a shared vault have the same names with a
/// suffix, so no statement can mix the items of two owners. A store without shared vaults has no further tables.
final class StoreTables {
    /// The tables that each owner has.
    private static let owned: Set<Substring> = [
        "facts", "items", "changes", "trash", "notices", "graves", "chunks", "draft_chunks", "manifests",
        "unread_items", "versions", "aging", "recent_deletions", "held_deletions", "chunk_contents", "confirmations",
        "set_aside",
    ]

    private let file: SQLiteDatabase
    /// The number of a shared vault; nil for the account.
    let number: Int64?
    /// Statements with the names of the vault's tables.
    private var named: [String: String] = [:]

    init(_ file: SQLiteDatabase, number: Int64? = nil) {
        self.file = file
        self.number = number
    }

    /// The tables of the account, and those that all owners share.
    var ofAccount: StoreTables { number == nil ? self : StoreTables(file) }

    /// Returns the tables of another owner.
    func of(_ number: Int64) -> StoreTables { StoreTables(file, number: number) }

    /// Returns a statement with the names of this owner's tables.
    func named(_ sql: String) -> String {
        guard let number else { return sql }
        if let known = named[sql] { return known }
        let name = Self.named(sql, number)
        named[sql] = name
        return name
    }

    static func named(_ sql: String, _ number: Int64) -> String { renamed(sql) { "\($0)_v\(number)" }.sql }

    /// Returns true for a statement about tables that each owner has.
    static func isOwned(_ sql: String) -> Bool { renamed(sql) { String($0) }.isOwned }

    /// The names of this vault's tables.
    var names: [String] { number.map { number in Self.owned.sorted().map { "\($0)_v\(number)" } } ?? [] }

    /// Replaces the names of owned tables and of their indexes, outside of texts in quotes. It reads bytes, because the
    /// boundaries of characters cost more than the statement.
    private static func renamed(_ sql: String, _ name: (Substring) -> String) -> (sql: String, isOwned: Bool) {
        let bytes = sql.utf8
        var result = ""
        var isOwned = false
        var isQuoted = false
        var end = bytes.startIndex
        while end < bytes.endIndex {
            let start = end
            let isWord = !isQuoted && isPartOfWord(bytes[start])
            repeat {
                if bytes[end] == UInt8(ascii: "'") { isQuoted.toggle() }
                bytes.formIndex(after: &end)
            } while end < bytes.endIndex && (!isQuoted && isPartOfWord(bytes[end])) == isWord
            let part = sql[start..<end]
            let isOwnedWord = isWord && isOwnedName(part)
            isOwned = isOwned || isOwnedWord
            result += isOwnedWord ? name(part) : String(part)
        }
        return (result, isOwned)
    }

    private static func isPartOfWord(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"):
            true
        default: false
        }
    }

    /// Returns true for the name of an owned table, and for one of its indexes, which has the table's name and `_by_`.
    private static func isOwnedName(_ word: Substring) -> Bool {
        if owned.contains(word) { return true }
        guard word.utf8.contains(UInt8(ascii: "_")) else { return false }
        return word.firstRange(of: "_by_").map { owned.contains(word[..<$0.lowerBound]) } ?? false
    }

    // MARK: Statements

    /// Runs a statement without results.
    /// - Returns: The number of changed rows.
    @discardableResult
    func execute(_ sql: String, _ values: SQLiteValue...) throws -> Int { try file.execute(named(sql), values) }

    func rows<Row>(_ sql: String, _ values: SQLiteValue..., decode: (SQLiteRow) throws -> Row) throws -> [Row] {
        try file.rows(named(sql), values, decode: decode)
    }

    /// Runs a query and calls `body` with each row.
    func forEach(_ sql: String, _ values: [SQLiteValue] = [], _ body: (SQLiteRow) throws -> Void) throws {
        try file.forEach(named(sql), values, body)
    }

    func transaction<Result>(_ body: () throws -> Result) throws -> Result { try file.transaction(body) }

    // MARK: The file

    var handle: OpaquePointer? { file.handle }

    var isLent: Bool { file.isLent }

    func close() { file.close() }

    var fileState: StoreFileState { file.fileState }

    @discardableResult
    func lend() -> StoreFileState { file.lend() }

    func takeBack() throws { try file.takeBack() }

    func checkOpen() throws { try file.checkOpen() }

    /// Copies the file into memory.
    func copied() throws -> StoreTables { StoreTables(try SQLiteDatabase(copyOf: file), number: number) }
}

extension Store {
    /// Returns the shared vaults with items on this device, in the order in which they were added.
    func vaults() throws -> [SharedVaultID] {
        try database.ofAccount.rows("SELECT vault FROM vaults ORDER BY number") { row in
            guard let id = row.blob(0).flatMap({ SharedVaultID(bytes: $0) }) else { throw StoreError.damaged }
            return id
        }
    }

    /// Returns the part of the store with the items of an owner. A shared vault gets its tables at the first call.
    func view(of owner: ItemOwner) throws -> Store {
        guard case .vault(let id) = owner else { return database.number == nil ? self : Store(database.ofAccount) }
        if let number = try number(of: id) { return Store(database.of(number)) }
        return try transaction {
            try database.execute("INSERT INTO vaults (vault) VALUES (?)", .blob(id.bytes))
            guard let number = try number(of: id) else { throw StoreError.damaged }
            let tables = database.of(number)
            try StoreSchema.create(tables)
            return Store(tables)
        }
    }

    /// Returns the parts of all owners, the account's first.
    func views() throws -> [Store] {
        try [view(of: .account)] + vaults().map { try view(of: .vault($0)) }
    }

    /// Returns the owners with deletions that wait for approval, of items or of files in a folder.
    func ownersHoldingDeletions() throws -> Set<ItemOwner> {
        let owners = try [.account] + vaults().map { ItemOwner.vault($0) }
        let ofItems = try owners.filter { try view(of: $0).number(.held) != nil }
        return try foldersHoldingDeletions().union(ofItems)
    }

    /// Returns the owners of the folders with waiting deletions. The folder of a shared vault that was removed from
    /// this device is not synced. It keeps its number, in case the vault returns.
    func foldersHoldingDeletions() throws -> Set<ItemOwner> {
        let vaults = try database.rows(
            """
            SELECT DISTINCT vault FROM folders WHERE held > 0 AND (vault IS NULL OR vault IN (SELECT vault FROM vaults))
            """
        ) { $0.blob(0) }
        return Set(vaults.map { $0.flatMap { SharedVaultID(bytes: $0) }.map { .vault($0) } ?? .account })
    }

    /// Returns the number of changes of all owners that the server has not confirmed.
    func changeCountOfAll() throws -> Int { try views().reduce(0) { try $0 + $1.changeCount() } }

    /// Removes a shared vault with all of its items from this device, and the files of its folders. A file that is
    /// missing when the vault returns is then no deletion.
    func removeTables(of id: SharedVaultID) throws {
        try transaction {
            try database.execute(
                "DELETE FROM folder_files WHERE folder IN (SELECT id FROM folders WHERE vault = ?)", .blob(id.bytes))
            try database.execute(
                "UPDATE folders SET held = 0, held_here = 0, held_there = 0 WHERE vault = ?", .blob(id.bytes))
            guard let number = try number(of: id) else { return }
            for name in database.of(number).names { try database.execute("DROP TABLE \(name)") }
            try database.execute("DELETE FROM vaults WHERE number = ?", .integer(number))
        }
    }

    /// Returns the number of a shared vault's tables; nil when it has none. A removed number is not used again.
    func number(of id: SharedVaultID) throws -> Int64? {
        try database.ofAccount.rows("SELECT number FROM vaults WHERE vault = ?", .blob(id.bytes)) { $0.integer(0) ?? 0 }
            .first
    }
}

internal import Foundation

#if canImport(CSQLite)
    internal import CSQLite
#else
    internal import SQLite3
#endif

/// The only connection to one SQLite file.
///
/// It is not `Sendable`: only its owner, an actor, uses it.
final class SQLiteDatabase {
    /// `sqlite3 *`, owned; null when SQLite had no memory for it, and after closing.
    private(set) var handle: OpaquePointer?
    private let path: String
    /// True while it is temporarily closed.
    private(set) var isLent = false
    /// Prepared statements by their SQL, owned.
    private var statements: [String: OpaquePointer] = [:]

    /// Opens the file, or creates one that only its owner can read.
    init(path: String) throws {
        self.path = path
        try openFile()
    }

    /// Copies a database into memory (SQLite's online backup).
    init(copyOf other: SQLiteDatabase) throws {
        path = ":memory:"
        try other.checkOpen()
        var handle: OpaquePointer?
        let code = sqlite3_open_v2(path, &handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_MEMORY, nil)
        self.handle = handle
        guard code == SQLITE_OK else { throw StoreError.unusable }
        sqlite3_extended_result_codes(handle, 1)
        guard let backup = sqlite3_backup_init(handle, "main", other.handle, "main") else { throw StoreError.unusable }
        sqlite3_backup_step(backup, -1)
        // Returns the error of the step, if there was one.
        try check(sqlite3_backup_finish(backup))
    }

    private func openFile() throws {
        try Self.prepare(path)
        var handle: OpaquePointer?
        let code = sqlite3_open_v2(
            path, &handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW, nil)
        // Stored before anything can throw: SQLite returns a handle even for an error.
        self.handle = handle
        guard code == SQLITE_OK else { throw StoreError.unusable }
        // SQLite opens a read-only file without an error.
        if sqlite3_db_readonly(handle, "main") == 1 { throw StoreError.readOnly }
        sqlite3_extended_result_codes(handle, 1)
        sqlite3_busy_timeout(handle, 250)
        // Exclusive: one process at a time. Full: commits are durable; macOS needs a separate pragma.
        for pragma in [
            "locking_mode = EXCLUSIVE", "journal_mode = WAL", "synchronous = FULL", "fullfsync = ON",
            "secure_delete = ON",
        ] {
            _ = try rows("PRAGMA \(pragma)") { _ in }
        }
        // The first transaction takes the lock.
        try transaction { _ = try rows("SELECT count(*) FROM sqlite_schema") { _ in } }
    }

    /// Creates the file when there is none. An existing file is not opened here. Closing its descriptor would release
    /// the locks of another connection of this process (POSIX locks belong to process and file).
    private static func prepare(_ path: String) throws {
        let made = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        if made >= 0 { closeDescriptor(made) }
        if made < 0, errno == EROFS { throw StoreError.readOnly }
        var status = stat()
        guard made >= 0 || errno == EEXIST, lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            throw StoreError.unusable
        }
        guard status.st_mode & 0o077 == 0 else {
            throw StoreError.exposedFile(path: path, mode: UInt32(status.st_mode) & 0o7777)
        }
    }

    deinit { close() }

    /// Closes the file. Reads and writes then fail, and another process can open the file.
    func close() {
        for statement in statements.values { sqlite3_finalize(statement) }
        statements = [:]
        sqlite3_close_v2(handle)
        handle = nil
    }

    // MARK: Temporary closing

    /// The state of the file. A write of another process gives it another one after ``lend()``.
    var fileState: StoreFileState { StoreFileState(path: path) }

    /// Closes the file until ``takeBack()``. Closing writes nothing, and a write of another process gives the file
    /// another modification time.
    /// - Returns: The state of the closed file. It is read before another process can write.
    @discardableResult
    func lend() -> StoreFileState {
        if handle == nil { return fileState }
        sqlite3_wal_checkpoint_v2(handle, nil, SQLITE_CHECKPOINT_TRUNCATE, nil, nil)
        waitForTick()
        let state = fileState
        close()
        isLent = true
        return state
    }

    /// The longest step of the clock that file systems use, in nanoseconds.
    private static let tick = 10_000_000

    /// Waits until the file's last write is older than one step of that clock.
    private func waitForTick() {
        var (status, now) = (stat(), timespec())
        guard lstat(path, &status) == 0, clock_gettime(CLOCK_REALTIME, &now) == 0 else { return }
        let written = status.modified
        guard (0...1).contains(now.tv_sec - written.tv_sec) else { return }
        let age = (now.tv_sec - written.tv_sec) * 1_000_000_000 + now.tv_nsec - written.tv_nsec
        if (0..<Self.tick).contains(age) { usleep(UInt32(Self.tick - age) / 1_000 + 1) }
    }

    /// Opens the file again.
    func takeBack() throws {
        if !isLent { return }
        do {
            try openFile()
        } catch {
            close()
            throw error
        }
        isLent = false
    }

    /// Throws unless the database is open.
    /// - Throws: ``StoreClosed``; ``StoreError/inUse`` while it is temporarily closed.
    func checkOpen() throws {
        if handle != nil { return }
        throw isLent ? StoreError.inUse : StoreClosed()
    }

    /// Runs `body` in a transaction, with all effects or none. Within a transaction, `body` is a part of that one.
    func transaction<Result>(_ body: () throws -> Result) throws -> Result {
        try checkOpen()
        guard sqlite3_get_autocommit(handle) != 0 else { return try body() }
        try execute("BEGIN IMMEDIATE")
        do {
            let result = try body()
            try execute("COMMIT")
            return result
        } catch {
            // SQLite may have rolled back by itself (a full disk). Then no rollback is needed.
            if sqlite3_get_autocommit(handle) == 0 { _ = try? execute("ROLLBACK") }
            throw error
        }
    }

    /// Runs a statement without results.
    /// - Returns: The number of changed rows.
    @discardableResult
    func execute(_ sql: String, _ values: [SQLiteValue] = []) throws -> Int {
        try run(sql, values) { _ in }
        return Int(sqlite3_changes(handle))
    }

    func rows<Row>(
        _ sql: String, _ values: [SQLiteValue] = [], decode: (SQLiteRow) throws -> Row
    ) throws -> [Row] {
        var rows: [Row] = []
        try run(sql, values) { row in rows.append(try decode(row)) }
        return rows
    }

    /// Runs a query and calls `body` with each row.
    func forEach(_ sql: String, _ values: [SQLiteValue] = [], _ body: (SQLiteRow) throws -> Void) throws {
        try run(sql, values, body)
    }

    private func run(
        _ sql: String, _ values: [SQLiteValue], _ body: (SQLiteRow) throws -> Void
    ) throws {
        let statement = try prepared(sql)
        defer {
            sqlite3_reset(statement)
            sqlite3_clear_bindings(statement)
        }
        for (index, value) in values.enumerated() { try check(value.bind(to: statement, at: Int32(index + 1))) }
        while true {
            let code = sqlite3_step(statement)
            if code == SQLITE_DONE { return }
            guard code == SQLITE_ROW else { throw error(code) }
            try body(SQLiteRow(statement: statement))
        }
    }

    private func prepared(_ sql: String) throws -> OpaquePointer {
        try checkOpen()
        if let statement = statements[sql] { return statement }
        var statement: OpaquePointer?
        try check(sqlite3_prepare_v3(handle, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &statement, nil))
        guard let statement else { throw StoreError.damaged }
        statements[sql] = statement
        return statement
    }

    private func check(_ code: Int32) throws {
        if code != SQLITE_OK { throw error(code) }
    }

    private func error(_ code: Int32) -> StoreError {
        switch code & 0xff {
        // After a disk failure the kernel makes the file system read-only.
        case SQLITE_IOERR where sqlite3_system_errno(handle) == EROFS: .readOnly
        case SQLITE_READONLY: .readOnly
        case SQLITE_BUSY, SQLITE_LOCKED: .inUse
        case SQLITE_FULL: .diskFull
        case SQLITE_CANTOPEN, SQLITE_PERM, SQLITE_AUTH: .unusable
        default: .damaged
        }
    }
}

/// Closes a descriptor from within a type that has its own `close()`.
private func closeDescriptor(_ descriptor: Int32) { close(descriptor) }

/// A value that is bound to a statement.
enum SQLiteValue {
    case null
    case integer(Int64)
    case text(String)
    case blob([UInt8])

    static func optional(_ value: Int64?) -> SQLiteValue { value.map(SQLiteValue.integer) ?? .null }
    static func optional(_ value: [UInt8]?) -> SQLiteValue { value.map(SQLiteValue.blob) ?? .null }
    static func optional(_ value: String?) -> SQLiteValue { value.map(SQLiteValue.text) ?? .null }

    /// `SQLITE_TRANSIENT`, a cast that Swift does not import: SQLite copies the bytes.
    private static let copied = unsafeBitCast(-1, to: sqlite3_destructor_type.self)

    fileprivate func bind(to statement: OpaquePointer, at index: Int32) -> Int32 {
        switch self {
        case .null: return sqlite3_bind_null(statement, index)
        case .integer(let value): return sqlite3_bind_int64(statement, index, value)
        case .text(let value):
            var value = value
            return value.withUTF8 { bytes in
                bytes.withMemoryRebound(to: CChar.self) {
                    sqlite3_bind_text64(
                        statement, index, $0.baseAddress, UInt64($0.count), Self.copied, UInt8(SQLITE_UTF8))
                }
            }
        case .blob(let bytes):
            // A null pointer would bind NULL instead of no bytes.
            if bytes.isEmpty { return sqlite3_bind_zeroblob(statement, index, 0) }
            return bytes.withUnsafeBytes {
                sqlite3_bind_blob64(statement, index, $0.baseAddress, UInt64($0.count), Self.copied)
            }
        }
    }
}

/// The current row of a query. It is valid until the next step.
struct SQLiteRow {
    fileprivate let statement: OpaquePointer

    func integer(_ column: Int32) -> Int64? {
        sqlite3_column_type(statement, column) == SQLITE_NULL ? nil : sqlite3_column_int64(statement, column)
    }

    func text(_ column: Int32) -> String? {
        sqlite3_column_text(statement, column).map { String(cString: $0) }
    }

    func blob(_ column: Int32) -> [UInt8]? {
        guard sqlite3_column_type(statement, column) != SQLITE_NULL else { return nil }
        let count = Int(sqlite3_column_bytes(statement, column))
        guard count > 0, let bytes = sqlite3_column_blob(statement, column) else { return [] }
        return [UInt8](UnsafeRawBufferPointer(start: bytes, count: count))
    }
}

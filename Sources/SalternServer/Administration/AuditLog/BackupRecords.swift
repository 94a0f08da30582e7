public import Postgres

/// Records backups in the audit log and reads their times.
public struct BackupRecords: Sendable {
    private let database: PostgresClient

    /// - Parameter database: Has the owner's rights to record; to read, those of the owner or of the server's role.
    public init(database: PostgresClient) {
        self.database = database
    }

    /// Records a backup that was written and read back.
    ///
    /// - Parameters:
    ///   - size: In bytes.
    ///   - signature: The actor.
    /// - Throws: A `PostgresError`, or ``AuditLogUnusable`` if the head of the audit log is missing.
    public func record(size: Int, by signature: AuditSignature) async throws {
        try await database.withTransaction { transaction in
            try await transaction.record(AppendAudit(signature, .databaseBackedUp, detail: "\(size) bytes"))
        }
    }

    /// Returns the times that give the age of the last backup.
    public func times() async throws(PostgresError) -> BackupTimes {
        let now = try await DatabaseClock.now(of: database)
        let found = try await database.execute(FindBackupTimes()).first
        return BackupTimes(now: now, last: found?.last, installed: found?.installed)
    }
}

/// The times of backups by the database's clock.
public struct BackupTimes: Sendable {
    public let now: Timestamp
    /// The last backup among the latest 100,000 rows of the audit log. Nil if there is none.
    public let last: Timestamp?
    /// The first start of a server. Nil before it.
    public let installed: Timestamp?

    public init(now: Timestamp, last: Timestamp?, installed: Timestamp?) {
        self.now = now
        self.last = last
        self.installed = installed
    }
}

/// Finds the last backup. It reads only the latest rows, so the cost does not depend on the log's length.
struct FindBackupTimes: Statement {
    struct Row: Sendable {
        let last: Timestamp?
        let installed: Timestamp?
    }

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT
            (SELECT l.occurred_at FROM
                (SELECT a.sequence, a.occurred_at, a.action FROM saltern.audit_log a ORDER BY a.sequence DESC LIMIT 100000) l
                WHERE l.action = 'database_backed_up' ORDER BY l.sequence DESC LIMIT 1),
            (SELECT i.created_at FROM saltern.installation i)
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

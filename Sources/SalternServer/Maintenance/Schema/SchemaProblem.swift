public import Postgres

/// Reasons for which this program cannot use a database's schema, with the remedy.
public enum SchemaProblem: Error, Sendable, Equatable {
    case missing
    /// The role lacks the right to read it.
    case forbidden
    case older
    case newer

    /// Checks the schema.
    ///
    /// - Returns: Nil if the program works with the schema.
    /// - Throws: A `PostgresError` if the query fails.
    public static func find(in database: PostgresClient) async throws(PostgresError) -> SchemaProblem? {
        do throws(PostgresError) {
            switch try await database.execute(ReadSchemaVersion()).first {
            case .fits: return nil
            case .newer: return .newer
            case .older, nil: return .older
            }
        } catch {
            switch error.sqlState {
            case SQLState.undefinedTable, SQLState.invalidSchemaName: return .missing
            case SQLState.insufficientPrivilege: return .forbidden
            default: throw error
            }
        }
    }
}

extension SchemaProblem: CustomStringConvertible {
    public var description: String {
        switch self {
        case .missing:
            "the database has no schema saltern: create it with `saltern migrate up`, or restore a backup with "
                + "`saltern restore`, unless this is the wrong database"
        case .forbidden:
            "the role may not use the schema saltern: connect as its owner, or as a member of saltern_server"
        case .older: "the database's schema is older than this program: run `saltern migrate up`"
        case .newer:
            "the database's schema is newer than this program: install the newer program; "
                + "`saltern migrate verify` lists the unknown migrations"
        }
    }
}

public import Postgres

/// The schema of this program.
public enum Schema {
    /// The migrations in order, from the files of `Migrations/` at build time.
    public static let migrations: [Migration] = {
        let files: [(name: String, sql: [UInt8])] = [
            ("accounts_sessions_items", PackageResources._001_accounts_sessions_items_sql),
            ("sync", PackageResources._002_sync_sql),
            ("account_life", PackageResources._003_account_life_sql),
            ("shares", PackageResources._004_shares_sql),
            ("guessing", PackageResources._005_guessing_sql),
            ("time_that_went_back", PackageResources._006_time_that_went_back_sql),
            ("bounds", PackageResources._007_bounds_sql),
            ("generation_before", PackageResources._008_generation_before_sql),
            ("hot_statements", PackageResources._009_hot_statements_sql),
            ("writer", PackageResources._010_writer_sql),
            ("vacuum", PackageResources._011_vacuum_sql),
            ("hot_checks", PackageResources._012_hot_checks_sql),
            ("server_rights", PackageResources._013_server_rights_sql),
            ("kept_keyrings", PackageResources._014_kept_keyrings_sql),
            ("versions", PackageResources._015_versions_sql),
            ("audiences", PackageResources._016_audiences_sql),
            ("outgoing_events", PackageResources._017_outgoing_events_sql),
            ("passkeys", PackageResources._018_passkeys_sql),
            ("vacuum_of_kept_rows", PackageResources._019_vacuum_of_kept_rows_sql),
            ("sessions_of_passkeys", PackageResources._020_sessions_of_passkeys_sql),
            ("cluster_registration", PackageResources._021_cluster_registration_sql),
            ("vaults", PackageResources._022_vaults_sql),
            ("vault_statistics", PackageResources._023_vault_statistics_sql),
        ]
        return files.enumerated().map { index, file in
            Migration(version: index + 1, name: file.name, sql: String(decoding: file.sql, as: UTF8.self))
        }
    }()

    /// The parts of the schema after all migrations.
    public static var parts: SchemaParts { SchemaParts(String(decoding: PackageResources.parts_txt, as: UTF8.self)) }

    /// The role with a server's rights. Each server's role is a member of it.
    public static let serverRole = "saltern_server"

    /// The compatibility of a database's schema with this program.
    enum Fit: Sendable {
        /// The program works with it.
        case fits
        case older
        case newer
    }

    /// Returns the compatibility of a schema whose newest migration is `version`.
    ///
    /// - Parameter oldestProgram: The oldest program, by its number of migrations, that all newer migrations tolerate.
    static func fit(version: Int, oldestProgram: Int) -> Fit {
        if version < needed { return .older }
        return version <= known || oldestProgram <= known ? .fits : .newer
    }

    /// The number of migrations in this program, and the number that it requires.
    static let known = migrations.count
    private static let needed = migrations.last { !$0.isFinishing }?.version ?? 0
}

extension Schema {
    /// The placement of each table on a cluster. Rows that one request reads together are on one node.
    ///
    /// Each table has an entry, because other tables would stay on the coordinator, invisible to other nodes.
    public static var placements: [TablePlacement] {
        [
            TablePlacement("installation", .everywhere),
            TablePlacement("plans", .everywhere),
            // Few rows, found by code, by id and by the account that used one.
            TablePlacement("invites", .everywhere),
            TablePlacement("destinations", .everywhere),
            TablePlacement("services", .everywhere),
            TablePlacement("schema_migrations", .onCoordinator),
            // One chain with one end.
            TablePlacement("audit_log", .onCoordinator),
            TablePlacement("audit_head", .onCoordinator),
            TablePlacement("logins", .spread(by: "userid", with: "logins")),
            TablePlacement("failed_attempts", .spread(by: "subject", with: "failed_attempts")),
            TablePlacement("shares", .spread(by: "share_id", with: "shares")),
            TablePlacement("accounts", ofAccount),
            TablePlacement("sessions", ofAccount),
            TablePlacement("items", ofAccount),
            TablePlacement("deleted_contents", ofAccount),
            TablePlacement("replaced_contents", ofAccount),
            TablePlacement("recoveries", ofAccount),
            TablePlacement("kept_keyrings", ofAccount),
            TablePlacement("second_factors", ofAccount),
            TablePlacement("second_factor_codes", ofAccount),
            TablePlacement("passkeys", ofAccount),
            TablePlacement("used_challenges", ofAccount),
            TablePlacement("rotations", ofAccount),
            TablePlacement("rotation_items", ofAccount),
            TablePlacement("receipts", ofAccount),
            TablePlacement("security_events", ofAccount),
            TablePlacement("account_shares", ofAccount),
            TablePlacement("event_queues", ofAccount),
            TablePlacement("outgoing_events", ofAccount),
            TablePlacement("memberships", ofAccount),
            TablePlacement("vaults", ofVault),
            TablePlacement("vault_members", ofVault),
            TablePlacement("vault_entries", ofVault),
            TablePlacement("vault_boxes", ofVault),
            TablePlacement("vault_generations", ofVault),
            TablePlacement("vault_seals", ofVault),
            TablePlacement("vault_items", ofVault),
            TablePlacement("vault_deleted_contents", ofVault),
            TablePlacement("vault_replaced_contents", ofVault),
            TablePlacement("vault_invitations", .spread(by: "invitation_id", with: "vault_invitations")),
        ]
    }

    private static let ofAccount = TablePlacement.Kind.spread(by: "account_id", with: "accounts")
    private static let ofVault = TablePlacement.Kind.spread(by: "vault_id", with: "accounts")
}

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

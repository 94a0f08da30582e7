internal import Postgres
internal import WebAuthn

/// Describes a passkey for its owner.
struct StoredPasskey: Sendable {
    let id: PasskeyID
    let name: String
    let algorithm: Int32
    let logsIn: Bool
    let isBackupEligible: Bool
    let isBackedUp: Bool
    let unlocks: Bool
    let createdAt: Timestamp
    let lastUsedAt: Timestamp?

    static let columns: SQLFragment = """
        k.credential_id, k.name, k.algorithm, k.logs_in, k.backup_eligible, k.backed_up, k.unlock_box IS NOT NULL, \
        k.created_at, k.last_used_at
        """
}

/// Finds the passkeys of an account, the oldest first.
struct FindPasskeys: AccountRead {
    typealias Row = StoredPasskey

    static let sql: AccountSQL<Self> = """
        SELECT \(StoredPasskey.columns) FROM saltern.passkeys k WHERE k.account_id = \(.account)
        ORDER BY k.created_at, k.credential_id
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(StoredPasskey.init) }
}

/// Finds the credential ids of an account's passkeys, the oldest first.
struct FindPasskeyIDs: AccountRead {
    typealias Row = PasskeyID

    static let sql: AccountSQL<Self> = """
        SELECT k.credential_id FROM saltern.passkeys k WHERE k.account_id = \(.account)
        ORDER BY k.created_at, k.credential_id
        """
}

/// Stores a new passkey. Returns no row if the account already has it. Requires a lock of the account's row.
struct InsertPasskey: Statement {
    typealias Row = PasskeyID

    let accountID: AccountID
    let id: PasskeyID
    let passkey: PasskeyRegistration.Passkey
    let name: PasskeyName
    let logsIn: Bool
    let now: Timestamp

    private var algorithm: Int32 { Int32(passkey.key.algorithm.rawValue) }
    private var signCount: Int64 { Int64(passkey.signCount) }

    static let sql: SQL<Self> = """
        INSERT INTO saltern.passkeys (account_id, credential_id, algorithm, public_key, sign_count, backup_eligible,
            backed_up, name, logs_in, created_at)
        VALUES (\(\.accountID), \(\.id), \(\.algorithm), \(\.passkey.key.bytes), \(\.signCount),
            \(\.passkey.isBackupEligible), \(\.passkey.isBackedUp), \(\.name.string), \(\.logsIn), \(\.now))
        ON CONFLICT (account_id, credential_id) DO NOTHING
        RETURNING credential_id
        """
}

/// Renames a passkey. Returns no row if it is unknown.
struct RenameStoredPasskey: AccountWrite {
    typealias Row = StoredPasskey

    let id: PasskeyID
    let name: PasskeyName

    static let sql: CallerSQL<Self> = """
        UPDATE saltern.passkeys k SET name = \(\.name.string)
        WHERE k.account_id = \(.account) AND k.credential_id = \(\.id) AND \(Caller.hasLiveSession)
        RETURNING \(StoredPasskey.columns)
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(StoredPasskey.init) }
}

/// Removes a passkey. Returns no row if it is unknown. Requires a lock of the account's row.
struct DeletePasskey: Statement {
    typealias Row = PasskeyID

    let accountID: AccountID
    let id: PasskeyID

    static let sql: SQL<Self> = """
        DELETE FROM saltern.passkeys k WHERE k.account_id = \(\.accountID) AND k.credential_id = \(\.id)
        RETURNING k.credential_id
        """
}

/// Removes all passkeys of an account.
struct DeletePasskeys: Statement {
    let accountID: AccountID

    struct Row: Sendable {
        let id: PasskeyID
        let name: String
    }

    static let sql: SQL<Self> =
        "DELETE FROM saltern.passkeys k WHERE k.account_id = \(\.accountID) RETURNING k.credential_id, k.name"

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

/// Stores the unlock box of a passkey. Returns whether the passkey logs in, or no row if it is unknown.
struct StoreUnlockBox: Statement {
    typealias Row = Bool

    let accountID: AccountID
    let id: PasskeyID
    let sealedPrivateKey: PasskeyBox
    let box: PasskeyBox

    static let sql: SQL<Self> = """
        UPDATE saltern.passkeys k SET unlock_key = CASE WHEN k.logs_in THEN \(\.sealedPrivateKey.bytes)::bytea END,
            unlock_box = CASE WHEN k.logs_in THEN \(\.box.bytes)::bytea END
        WHERE k.account_id = \(\.accountID) AND k.credential_id = \(\.id)
        RETURNING k.logs_in
        """
}

/// Removes the unlock box of a passkey and the key that opens it. Returns no row if the passkey has none.
struct RemoveUnlockBox: Statement {
    typealias Row = PasskeyID

    let accountID: AccountID
    let id: PasskeyID

    static let sql: SQL<Self> = """
        UPDATE saltern.passkeys k SET unlock_key = NULL, unlock_box = NULL
        WHERE k.account_id = \(\.accountID) AND k.credential_id = \(\.id) AND k.unlock_box IS NOT NULL
        RETURNING k.credential_id
        """
}

/// Replaces the unlock box of a passkey and keeps the key that opens it.
struct ReplaceUnlockBox: Statement {
    let accountID: AccountID
    let id: PasskeyID
    let box: PasskeyBox

    static let sql: SQL<Self> = """
        UPDATE saltern.passkeys k SET unlock_box = \(\.box.bytes)
        WHERE k.account_id = \(\.accountID) AND k.credential_id = \(\.id) AND k.unlock_box IS NOT NULL
        """
}

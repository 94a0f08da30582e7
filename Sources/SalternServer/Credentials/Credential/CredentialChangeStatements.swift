internal import Postgres

/// Gives a userid a new verifier, and ends the present generation of tokens of devices; the new one when the userid's
/// credential was still the one that the caller knows. Generations are counted as ``AccountCounter`` counts: after a
/// restore none that began in the lost time begins again, and its tokens stay those of strangers.
struct ReplaceVerifier: Statement {
    typealias Row = Int64

    let userid: Userid
    let accountID: AccountID
    let verifier: Verifier
    let kdfIterations: Int32
    /// The credential that is replaced.
    let credentialRevision: Int64
    let previousKey: PreviousKeyMark?
    let now: Timestamp

    static let sql: SQL<Self> = """
        UPDATE saltern.logins l
        SET verifier = \(\.verifier), kdf_iterations = \(\.kdfIterations),
            credential_revision = l.credential_revision + 1,
            \(DeviceGenerationMove.assignments(at: "\(\.now)")), previous_key = \(\.previousKey)
        WHERE l.userid = \(\.userid.string) AND l.account_id = \(\.accountID)
            AND l.credential_revision = \(\.credentialRevision)
        RETURNING l.device_generation
        """
}

/// Ends the present generation of tokens of devices; the new one, unless the userid is not the account's.
struct MoveDeviceGeneration: Statement {
    typealias Row = Int64

    let userid: Userid
    let accountID: AccountID
    let now: Timestamp

    static let sql: SQL<Self> = """
        UPDATE saltern.logins l
        SET \(DeviceGenerationMove.assignments(at: "\(\.now)"))
        WHERE l.userid = \(\.userid.string) AND l.account_id = \(\.accountID)
        RETURNING l.device_generation
        """
}

/// SQL for the end of a generation of tokens of devices, in the row `l` of its userid.
private enum DeviceGenerationMove {
    static let next = AccountCounter.next("l.device_generation")

    /// Which generation was before is noted, because it is not always the number below.
    static func assignments<S>(at now: SQL<S>) -> SQL<S> {
        """
        device_generation = \(next), device_generation_before = l.device_generation,
            device_generation_moved_at = \(now)
        """
    }
}

/// The generation of tokens of devices that comes after the present one, and that one. The userid's row is left behind.
struct NextDeviceGeneration: Statement {
    struct Row: Sendable {
        let next: Int64
        let present: Int64
    }

    let userid: Userid
    let accountID: AccountID

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT \(DeviceGenerationMove.next), l.device_generation FROM saltern.logins l
        WHERE l.userid = \(\.userid.string) AND l.account_id = \(\.accountID)
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

/// Takes a userid for an account that has another one now; no row when somebody has it.
///
/// It waits for whoever is about to take or to leave the userid. The old one is left afterwards, with ``RemoveLogin``:
/// in this order two accounts that want each other's userids are both refused, and never wait for each other.
struct TakeUserid: Statement {
    typealias Row = Bool

    let userid: Userid
    let accountID: AccountID
    let verifier: Verifier
    let kdfIterations: Int32
    /// The credential that is replaced.
    let credentialRevision: Int64
    /// The generation of tokens of devices that begins, and the one before.
    let generation: NextDeviceGeneration.Row
    let previousKey: PreviousKeyMark?
    let now: Timestamp

    private var nextRevision: Int64 { credentialRevision + 1 }

    static let sql: SQL<Self> = """
        INSERT INTO saltern.logins
            (userid, account_id, verifier, kdf_iterations, credential_revision, device_generation,
            device_generation_before, device_generation_moved_at, previous_key)
        VALUES (\(\.userid.string), \(\.accountID), \(\.verifier), \(\.kdfIterations), \(\.nextRevision),
            \(\.generation.next), \(\.generation.present), \(\.now), \(\.previousKey))
        ON CONFLICT (userid) DO NOTHING
        RETURNING true
        """
}

/// Frees a userid.
struct RemoveLogin: Statement {
    let userid: Userid
    let accountID: AccountID

    static let sql: SQL<Self> =
        "DELETE FROM saltern.logins WHERE userid = \(\.userid.string) AND account_id = \(\.accountID)"
}

/// The account's side of a change of credential: the number of the credential, the userid when it is a new one, and the
/// keyring when there is a new one. No row when credential or keyring are not those that the caller knows.
struct MoveCredential: Statement {
    /// The keyring's revision; nil when there is no keyring.
    typealias Row = Int64?

    let accountID: AccountID
    /// The credential that is replaced.
    let credentialRevision: Int64
    let userid: Userid?
    let keyring: Keyring?
    /// The revision of the keyring that is replaced; nil for any.
    let keyringRevision: Int64?

    static let sql: SQL<Self> = """
        UPDATE saltern.accounts a
        SET credential_revision = a.credential_revision + 1, userid = coalesce(\(\.userid?.string), a.userid),
            keyring = coalesce(\(\.keyring?.bytes), a.keyring),
            keyring_revision = CASE WHEN \(\.keyring?.bytes) IS NULL OR a.keyring = \(\.keyring?.bytes)
                THEN a.keyring_revision
                ELSE \(AccountCounter.next("a.keyring_revision")) END
        WHERE a.account_id = \(\.accountID) AND a.credential_revision = \(\.credentialRevision)
            AND (\(\.keyringRevision)::bigint IS NULL OR a.keyring_revision = \(\.keyringRevision))
        RETURNING CASE WHEN a.keyring IS NOT NULL THEN a.keyring_revision END
        """
}

/// The caller's session when it is live, restricted or not, and what leads to the credential of its account.
struct FindAnySession: Statement {
    let caller: Caller

    struct Row: Sendable {
        let isRestricted: Bool
        let userid: Userid
        let credentialRevision: Int64
        let expiresAt: Timestamp
    }

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT s.restricted, a.userid, a.credential_revision, s.expires_at
        FROM saltern.sessions s JOIN saltern.accounts a ON a.account_id = s.account_id
        WHERE s.account_id = \(\.caller.accountID) AND s.token_hash = \(\.caller.tokenHash)
            AND \(SessionLiveness.hasNotEnded("s", at: "\(\.caller.now)", idleSince: "\(\.caller.idleSince)"))
            AND a.account_id = \(\.caller.accountID) AND a.locked_at IS NULL
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

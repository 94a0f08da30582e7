internal import Cryptography
internal import Postgres

/// Replaces a userid's verifier and ends the present generation of device tokens. Returns the new generation, and no
/// row if the credential is not the expected one.
///
/// Generations are numbered like ``AccountCounter``. After a restore, generations of the lost period are not reused, so
/// their tokens stay invalid.
struct ReplaceVerifier: Statement {
    typealias Row = Int64

    let userid: Userid
    let accountID: AccountID
    let verifier: Verifier
    let kdfIterations: Int32
    /// The number of the credential to replace.
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

/// Ends the present generation of device tokens. Returns the new one, and no row if the userid is not the account's.
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

/// SQL for the end of a generation of device tokens, in the row `l` of its userid.
private enum DeviceGenerationMove {
    static let next = AccountCounter.next("l.device_generation")

    /// Stores the previous generation, because it is not always the number below.
    static func assignments<S>(at now: SQL<S>) -> SQL<S> {
        """
        device_generation = \(next), device_generation_before = l.device_generation,
            device_generation_moved_at = \(now)
        """
    }
}

/// Reads the next generation of device tokens and the present one. The userid's row stays unchanged.
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

/// Takes a new userid for an account. Returns no row if it is taken.
///
/// It waits for transactions that are taking or freeing the userid. ``RemoveLogin`` frees the old one afterwards. With
/// this order, two accounts that exchange userids are both rejected and never wait for each other.
struct TakeUserid: Statement {
    typealias Row = Bool

    let userid: Userid
    let accountID: AccountID
    let verifier: Verifier
    let kdfIterations: Int32
    /// The number of the credential to replace.
    let credentialRevision: Int64
    /// The new generation of device tokens and the previous one.
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

struct RemoveLogin: Statement {
    let userid: Userid
    let accountID: AccountID

    static let sql: SQL<Self> =
        "DELETE FROM saltern.logins WHERE userid = \(\.userid.string) AND account_id = \(\.accountID)"
}

/// Changes the account's row: the credential's number, and userid and keyring if they are new. Returns no row if
/// credential or keyring are not the expected ones.
struct MoveCredential: Statement {
    /// The keyring's revision. Nil without a keyring.
    typealias Row = Int64?

    let accountID: AccountID
    /// The number of the credential to replace.
    let credentialRevision: Int64
    let userid: Userid?
    let keyring: Keyring?
    /// The revision of the keyring to replace. Nil for any.
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

/// Finds the caller's session if it is live, restricted or not, with userid and number of the account's credential.
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

/// Recognises the password key that was replaced last. A repeated change, whose reply was lost, is identified by *both*
/// of its keys. For an attacker such a request is one guess like any other.
struct PreviousKeys: Sendable {
    /// The active key first. Marks under the others remain valid.
    private let keys: [HMACSHA256.Key]

    init(keys: [HMACSHA256.Key]) {
        self.keys = keys
    }

    /// Returns the mark of a replaced verifier: HMAC-SHA256 (RFC 2104) under a key derived from the master key.
    func mark(_ verifier: Verifier, of account: AccountID) -> PreviousKeyMark? {
        keys.first.map { Self.mark(verifier, account, $0) }
    }

    /// Returns true if the verifier is the one that was replaced last. All keys are tried, even after a match.
    func fits(_ mark: PreviousKeyMark?, _ verifier: Verifier, of account: AccountID) -> Bool {
        keys.reduce(false) { fits, key in Self.mark(verifier, account, key) == mark || fits }
    }

    private static func mark(_ verifier: Verifier, _ account: AccountID, _ key: HMACSHA256.Key) -> PreviousKeyMark {
        PreviousKeyMark(key.authenticationCode(for: account.uuid.bytes + verifier.digest.bytes))
    }
}

/// The keyed hash of a replaced verifier. It grants nothing.
struct PreviousKeyMark: StoredDigest {
    let digest: SHA256Digest
}

internal import Cryptography
internal import HTTPCore
internal import Postgres

/// The client's 32-byte PBKDF2 output. The server receives nothing else of a password.
struct PasswordKey: Sendable {
    static let byteCount = 32

    private let bytes: SecureBytes

    /// Accepts bytes that can be the output of a key derivation function.
    ///
    /// - Throws: ``NotAStretchedKey`` for another length, for 32 equal bytes, and for printable ASCII with optional
    ///   zeros on either side, which is a truncated or padded password. A random key has that form with a probability
    ///   below 2·Σ (95/256)^k·(1/256)^(32-k) < 4·10^-14, and equal bytes with 256^-31.
    init(_ bytes: SecureBytes) throws(NotAStretchedKey) {
        guard bytes.count == Self.byteCount, !bytes.withUnsafeBytes(Self.looksLikeText) else {
            throw NotAStretchedKey()
        }
        self.bytes = bytes
    }

    /// Reads base64.
    init(json: JSONValue) throws {
        guard let decoded = Base64Text.decodeSecure(try json.text()) else { throw NotAStretchedKey() }
        try self.init(decoded)
    }

    /// SHA-256 of the key, which is stored and compared.
    var verifier: Verifier { Verifier(SHA256.hash(bytes)) }

    private static func looksLikeText(_ bytes: UnsafeRawBufferPointer) -> Bool {
        if bytes.allSatisfy({ $0 == bytes[0] }) { return true }
        let isPadding: (UInt8) -> Bool = { $0 == 0 }
        let withoutTail = bytes.reversed().drop(while: isPadding)
        let withoutHead = bytes.drop(while: isPadding)
        return withoutTail.allSatisfy(isPrintable) || withoutHead.allSatisfy(isPrintable)
    }

    private static func isPrintable(_ byte: UInt8) -> Bool { (0x20..<0x7F).contains(byte) }
}

/// The error of bytes that are no password key.
struct NotAStretchedKey: ProblemConvertible {
    var problem: Problem {
        Problem(
            .unprocessableContent, "not_a_stretched_key",
            detail: "A password key must be canonical base64 of the 32 bytes that PBKDF2-HMAC-SHA256 returns.")
    }
}

/// SHA-256 of a password key. Compared in constant time, never printed.
struct Verifier: StoredDigest {
    let digest: SHA256Digest

    /// Returns a verifier without a key. It is compared for unknown userids, so that the comparison always takes place.
    static func decoy() -> Verifier { Verifier(SHA256.hash(SecureRandom.bytes(32))) }
}

/// Finds the row that a log-in is checked against.
///
/// Costs 23 thousand instructions (see `Statement`): one row by its key. It does not read the account's row;
/// ``OpenSession`` does so under its lock.
struct FindLogin: Statement {
    let userid: Userid

    struct Row: Sendable {
        let accountID: AccountID
        let verifier: Verifier
        let kdfIterations: Int32
        /// Increases with every change of the credential.
        let credentialRevision: Int64
        /// The present generation of device tokens. It increases with every change of the credential, and when all
        /// other sessions end.
        let deviceGeneration: Int64
        /// The previous generation.
        let deviceGenerationBefore: Int64?
        let deviceGenerationMovedAt: Timestamp?
        /// The mark of the previous verifier.
        let previousKey: PreviousKeyMark?
    }

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT account_id, verifier, kdf_iterations, credential_revision, device_generation,
            device_generation_before, device_generation_moved_at, previous_key
        FROM saltern.logins WHERE userid = \(\.userid.string)
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

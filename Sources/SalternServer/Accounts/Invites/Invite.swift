internal import Cryptography
internal import HTTPCore
public import Postgres

/// An invite as its issuer lists it, without the code.
public struct Invite: Sendable, Equatable {
    public let id: InviteID
    public let createdAt: Timestamp
    public let expiresAt: Timestamp
    /// The plan of the registered account. Nil for the default plan.
    public let plan: String?
    public let note: String?
    public let usedAt: Timestamp?
    public let revokedAt: Timestamp?

    /// The state of an invite.
    public enum State: String, Sendable {
        case open
        case used
        case revoked
        case expired
    }

    /// Returns the state at `now`.
    public func state(at now: Timestamp) -> State {
        if usedAt != nil { return .used }
        if revokedAt != nil { return .revoked }
        return expiresAt <= now ? .expired : .open
    }
}

/// Identifies an invite to its issuer. It grants nothing.
public typealias InviteID = Identifier<Invite>

extension Invite: DecodableRow {
    public init(row: inout RowReader) throws(PostgresError) {
        id = try row.next()
        createdAt = try row.next()
        expiresAt = try row.next()
        plan = try row.next()
        note = try row.next()
        usedAt = try row.next()
        revokedAt = try row.next()
    }
}

/// The code for one registration: `sli_` and base64url of 24 random bytes. Only its hash is stored.
public struct InviteCode: Sendable {
    private let secret: SecureBytes

    static let prefix = "sli_"
    static let secretByteCount = 24

    private init(secret: SecureBytes) {
        self.secret = secret
    }

    static func random() -> InviteCode { InviteCode(secret: SecureRandom.secureBytes(secretByteCount)) }

    /// Reads the `invite` member as typed or pasted. Nil if the text is empty, like an empty field of a form.
    ///
    /// - Throws: ``RegistrationProblem/invalidInvite`` for all malformed codes, without the reason.
    init?(optional json: JSONValue) throws {
        guard let text = PastedCode.read(try json.text(), keepsHyphens: true) else {
            throw RegistrationProblem.invalidInvite
        }
        if text.isEmpty { return nil }
        guard let secret = text.withContiguousStorageIfAvailable(Self.parse) ?? nil else {
            throw RegistrationProblem.invalidInvite
        }
        self.init(secret: secret)
    }

    private static func parse(_ text: UnsafeBufferPointer<UInt8>) -> SecureBytes? {
        let prefix = Self.prefix.utf8
        guard text.starts(with: prefix),
            let secret = try? Base64URL.decodeSecure(
                UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(text)[prefix.count...])),
            secret.count == secretByteCount
        else { return nil }
        return secret
    }

    /// The stored hash.
    var hash: InviteHash { InviteHash(SHA256.hash(secret)) }

    /// The code in the form that users receive, shown once.
    public var text: String { Self.prefix + Base64URL.encodeToString(secret) }
}

/// SHA-256 of an invite's random part.
struct InviteHash: StoredDigest {
    let digest: SHA256Digest
}

/// Uses an invite up. Returns no row if it is unknown, used, revoked or expired. Of concurrent uses, the first to
/// commit succeeds.
struct ConsumeInvite: Statement {
    let hash: InviteHash
    let now: Timestamp

    struct Row: Sendable {
        let id: InviteID
        let plan: String?
    }

    static let sql: SQL<Self> = """
        UPDATE saltern.invites SET used_at = \(\.now)
        WHERE code_hash = \(\.hash) AND used_at IS NULL AND revoked_at IS NULL AND expires_at > \(\.now)
        RETURNING invite_id, plan
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

/// Finds an invite by its code, in any state.
struct FindInviteOfCode: Statement {
    typealias Row = InviteID

    let hash: InviteHash

    static let isReadOnly = true
    static let sql: SQL<Self> = "SELECT invite_id FROM saltern.invites WHERE code_hash = \(\.hash)"
}

/// Finds the invite that an account registered with.
struct FindInviteOfAccount: Statement {
    typealias Row = InviteID?

    let accountID: AccountID

    static let isReadOnly = true
    static let sql: SQL<Self> = "SELECT a.invite_id FROM saltern.accounts a WHERE a.account_id = \(\.accountID)"
}

/// The statements of invites.
extension StatementList {
    static var invites: [any Statement.Type] {
        [
            InsertInvite.self, ConsumeInvite.self, FindInviteOfCode.self, FindInviteOfAccount.self, FindInvites.self,
            FindInvite.self, RevokeInvite.self,
        ]
    }
}

internal import Cryptography
public import HTTPCore
public import Postgres

/// A group of the operator's services that accepts identity tokens and shares one set of pairwise names.
public struct Audience: Sendable, Hashable {
    public let name: AudienceName
    /// True if its tokens contain the account's identifier.
    public let seesAccountID: Bool
    /// True if its tokens contain the userid.
    public let seesUserid: Bool

    public init(_ name: AudienceName, seesAccountID: Bool = false, seesUserid: Bool = false) {
        self.name = name
        self.seesAccountID = seesAccountID
        self.seesUserid = seesUserid
    }

    /// Reads `billing`, `billing=account`, `billing=userid` or `billing=account+userid`; nil for anything else.
    public init?(_ text: String) {
        let parts = text.split(separator: "=", omittingEmptySubsequences: false)
        guard let name = AudienceName(String(parts[0])), parts.count <= 2 else { return nil }
        let options = parts.count == 1 ? [] : parts[1].split(separator: "+", omittingEmptySubsequences: false)
        guard options.allSatisfy({ $0 == "account" || $0 == "userid" }), Set(options).count == options.count else {
            return nil
        }
        self.init(name, seesAccountID: options.contains("account"), seesUserid: options.contains("userid"))
    }
}

/// The name of an audience.
public typealias AudienceName = OperatorName<Audience>

/// A name of an audience, a service or a destination: 1 to 64 of `a-z`, `0-9`, `.`, `_` and `-`. The first is a letter
/// or a digit. The type names the kind, so that a service's name cannot be used as an audience's.
public struct OperatorName<Named>: Sendable, Hashable, CustomStringConvertible {
    public let description: String

    /// The most bytes of a name.
    public static var byteLimit: Int { 64 }

    public init?(_ text: String) {
        guard text.utf8.count <= Self.byteLimit, text.wholeMatch(of: /[a-z0-9][a-z0-9._-]*/) != nil else { return nil }
        description = text
    }
}

extension OperatorName: PostgresValue {
    public static var postgresType: PostgresType { .text }

    public func encode(to writer: inout ByteWriter) { description.encode(to: &writer) }

    public static func decode(_ bytes: UnsafeRawBufferPointer?) -> OperatorName? {
        String.decode(bytes).flatMap { OperatorName($0) }
    }
}

extension OperatorName: LogValue {
    public func writeLogValue(to writer: inout JSONWriter) { writer.string(description) }
}

/// Gives accounts and sessions a different name for each audience. Each installation has one key.
///
/// The key is generated once and never replaced. The database stores it sealed by the master key.
struct PairwiseKey: Sendable {
    /// The size, in bytes.
    private static let byteCount = 32

    private let secret: SecureBytes
    private let key: HMACSHA256.Key

    private init(_ secret: SecureBytes) {
        self.secret = secret
        key = HMACSHA256.Key(secret)
    }

    /// Generates a random key.
    static func random() -> PairwiseKey { PairwiseKey(SecureRandom.secureBytes(byteCount)) }

    /// Opens the value that ``sealed(by:)`` returned.
    init(sealed: [UInt8], masterKey: MasterKey) throws(MasterKeyError) {
        let secret = try masterKey.open(sealed, for: .pairwiseKey)
        guard secret.count == Self.byteCount else { throw .notAuthentic }
        self.init(secret)
    }

    /// The form that the database stores.
    func sealed(by masterKey: MasterKey) throws(AESGCM.Failure) -> [UInt8] {
        try masterKey.seal(secret, for: .pairwiseKey)
    }

    /// The first byte of a message: one for each use of the key.
    enum Kind: UInt8 {
        case account = 1
        case session = 2
        /// Keys of token identifiers (``TokenIdentifier``).
        case tokenIdentifier = 3
    }

    /// HMAC-SHA256 over the kind, the length of the audience's name in one byte, the name, and `id`. The length keeps
    /// two messages of different audiences apart.
    func code(_ kind: Kind, for audience: AudienceName, _ id: some Collection<UInt8>) -> SHA256Digest {
        let name = audience.description.utf8
        return key.authenticationCode(for: [kind.rawValue, UInt8(name.count)] + Array(name) + Array(id))
    }
}

/// Names an account or a session for one audience. Audiences cannot link their names of one account, and only the
/// server can compute a name.
struct PairwiseSubject: Hashable, Sendable {
    private let code: SHA256Digest

    /// The name of an account.
    init(of account: AccountID, for audience: AudienceName, key: PairwiseKey) {
        code = key.code(.account, for: audience, account.uuid.bytes)
    }

    /// The name of a session.
    init(of session: SessionID, for audience: AudienceName, key: PairwiseKey) {
        code = key.code(.session, for: audience, session.uuid.bytes)
    }

    /// 43 characters of base64url, as tokens and events carry it.
    var text: String { Base64URL.encodeToString(code.bytes) }
}

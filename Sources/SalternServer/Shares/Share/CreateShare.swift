internal import Cryptography
internal import HTTPCore
internal import Postgres

/// `POST /v1/shares`: stores a sealed payload behind a new link.
///
/// A share has two rows: links are unique in one table, and accounts count their shares in another. The second row is
/// written only if the first was, in the same transaction.
struct CreateShare: AccountEndpoint, OpenEndpoint {
    private let database: PostgresClient
    private let clock: any WallClock
    private let policy: SharePolicy

    init(_ parts: Dependencies) {
        database = parts.database
        clock = parts.clock
        policy = parts.configuration.shares
    }

    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let now = authorization.now
        let content = try await ShareContent(request, now: now)
        let id = ShareID.random()
        let token = ManageToken()
        let byteCount = content.sealed.bytes.count
        let account = authorization.accountID
        let admission = AdmitShare(byteCount: Int64(byteCount))
        let note = InsertAccountShare(
            admission: admission, accountID: account, id: id, now: now, expiresAt: content.expiresAt)
        let write = InsertShare(account: account, id: id, manageHash: token.hash, content: content, now: now)
        func create() async throws -> AdmitShare.Row? {
            try await authorization.write(admission, followedBy: note, write, of: byteCount).first.first
        }
        var noted = try await create()
        if noted?.hasEndedShares == true {
            try await authorization.transaction { transaction in
                try await AccountShares.removeEnded(of: account, at: now, in: transaction)
            }
            noted = try await create()
        }
        guard let share = noted else { throw Unauthenticated() }
        if let limit = share.exceededLimit {
            throw ItemProblem.quotaExceeded(limit: limit, allowed: share.allowed, used: share.used)
        }
        return Self.reply(ShareHeader(id: id, content: content, now: now), token)
    }

    /// Creates a share without an account. The route accepts it only if the policy allows it.
    func respond(to request: Request) async throws -> Response {
        let now = clock.now
        let content = try await ShareContent(request, now: now)
        try content.checkAnonymous(now: now)
        let id = ShareID.random()
        let token = ManageToken()
        let note = InsertAnonymousShare(
            id: id, now: now, expiresAt: content.expiresAt, limit: Int64(policy.anonymousLimit))
        let write = InsertShare(account: .nobody, id: id, manageHash: token.hash, content: content, now: now)
        func create() async throws -> Bool {
            try await database.execute(note, RefuseAnonymousShare(note: note), write, key: .share(id)).1.isEmpty
        }
        var isCreated = try await create()
        if !isCreated {
            try await database.withTransaction(key: .account(.nobody)) { transaction in
                try await AccountShares.removeEnded(of: .nobody, at: now, in: transaction)
            }
            isCreated = try await create()
        }
        guard isCreated else { throw ShareProblem.anonymousClosed }
        return Self.reply(ShareHeader(id: id, content: content, now: now), token)
    }

    private static func reply(_ header: ShareHeader, _ token: ManageToken) -> Response {
        .json(.created, capacity: 512) { writer in
            writer.object { writer in
                header.write(to: &writer)
                token.write("manageToken", to: &writer)
            }
        }
    }
}

/// The token that changes or deletes one share: `slm_` and base64url of 32 random bytes. Only its hash is stored.
struct ManageToken: Sendable {
    private let secret = SecureRandom.secureBytes(secretByteCount)

    static let prefix = "slm_"
    static let secretByteCount = 32

    /// The stored hash.
    var hash: TokenHash { TokenHash(SHA256.hash(secret)) }

    /// Writes the token for the client. No other reply contains it.
    func write(_ name: String, to writer: inout JSONWriter) { writer.member(name, Self.prefix, base64URL: secret) }
}

/// The manage token of a request: the hash, without the secret.
struct PresentedManageToken: Sendable {
    let hash: TokenHash

    /// Reads `Authorization: Bearer slm_…`. Nil if the field is absent, repeated or malformed.
    init?(_ fields: RequestFields) {
        let hash = BearerSecret.read(
            fields, prefix: ManageToken.prefix, byteCount: ManageToken.secretByteCount
        ) { secret in
            TokenHash(SHA256.hash(secret))
        }
        guard let hash else { return nil }
        self.hash = hash
    }
}

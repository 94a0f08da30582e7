internal import HTTPCore
internal import Postgres

/// `POST /v1/account/totp`: creates the secret of one-time passwords and returns it once. The second factor takes
/// effect when a code confirms it. Until then another call creates another secret.
struct BeginSecondFactor: AccountEndpoint {
    private let masterKey: MasterKey
    private let issuer: String
    private let proofs: ProofReader

    init(_ parts: Dependencies) {
        proofs = ProofReader(parts, for: .beginTOTP)
        masterKey = parts.configuration.masterKey
        issuer = parts.configuration.name
    }

    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let proven = try await authorization.prove(proofs.read(request))
        let passwords = OneTimePasswords.random()
        let sealed = try masterKey.seal(passwords.secret, for: .oneTimePasswords(of: proven.accountID))
        try await authorization.change(as: proven) { transaction in
            let enrolled = try await transaction.execute(
                EnrolSecondFactor(accountID: proven.accountID, sealedSecret: sealed, now: proven.now))
            guard !enrolled.isEmpty else { throw SecondFactorProblem.isEnabled }
        }
        return .json(.created) { writer in
            writer.object { writer in
                passwords.write(issuer: issuer, userid: proven.userid, to: &writer)
            }
        }
    }
}

/// `POST /v1/account/totp/confirm`: confirms the second factor by a code, which is used up. Log-ins require one from
/// then on. The reply returns the recovery codes once.
///
/// Existing sessions continue. A repeated confirmation is rejected: the recovery codes are stored as hashes and cannot
/// be returned again.
struct FinishSecondFactor: AccountEndpoint {
    private let masterKey: MasterKey

    init(_ parts: Dependencies) {
        masterKey = parts.configuration.masterKey
    }

    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let shown = try JSONBody.read(request) { try $0.required("totp", SecondFactorCode.init(json:)) }
        guard let found = try await authorization.read(FindSecondFactor()).first else {
            throw SecondFactorProblem.nothingPending
        }
        guard !found.isConfirmed else { throw SecondFactorProblem.isEnabled }
        let account = authorization.accountID
        let passwords = try found.factor.passwords(of: account, masterKey)
        guard let userid = try await authorization.read(FindUserid()).first else { throw Unauthenticated() }
        let step = try await authorization.attempt(userid).run { check -> CheckResult<Int64> in
            guard case .oneTime(let code) = shown,
                let step = passwords.step(of: code, at: check.now, after: found.factor.lastStep)
            else { return .wrong(.confirmation, SecondFactorProblem.wrongConfirmation) }
            return .right(step)
        }
        let codes = SecondFactorRecoveryCode.randomSet()
        let confirmation = ConfirmSecondFactor(enrolledAt: found.factor.enrolledAt, step: step)
        let event = RecordSecurityEvent(
            accountID: account, kind: .totpEnabled, now: authorization.now, writer: confirmation.writer)
        let confirmed = try await authorization.write(
            confirmation,
            followedBy: StoreFirstCodes(
                confirmation: confirmation, accountID: account, codes: codes.map { $0.hash(for: account) }),
            event, DropOldEvents(after: event)
        ).first
        // A concurrent request has confirmed with the same code, or stored another secret.
        guard !confirmed.isEmpty else { throw SecondFactorProblem.nothingPending }
        return .recoveryCodes(codes)
    }
}

/// Reasons to reject a second factor or its code.
enum SecondFactorProblem: ProblemConvertible {
    /// The password key is right, and the account also requires a code.
    case required
    /// The password key is right, and the account has passkeys. Carries request options if the server accepts passkeys.
    case passkeyRequired(hasCodes: Bool, JSONValue?)
    /// The code is wrong, expired or used. Clients do not receive the reason.
    case wrongCode
    /// The code does not match the unconfirmed secret.
    case wrongConfirmation
    case isEnabled
    case isNotEnabled
    case nothingPending

    var problem: Problem {
        switch self {
        case .required:
            Problem(
                .unauthorized, "totp_required",
                detail: "The account has a second factor. Send the same request with `totp`.",
                responseFields: ["WWW-Authenticate": "Bearer"])
        case .passkeyRequired(let hasCodes, let options):
            Problem(
                .unauthorized, "second_factor_required",
                detail: "The account has a second factor. Send the same request with one of `factors`.",
                members: [
                    (name: "factors", value: .array((hasCodes ? ["totp"] : []) + (options == nil ? [] : ["passkey"])))
                ] + (options.map { [(name: "publicKey", value: $0)] } ?? []),
                responseFields: ["WWW-Authenticate": "Bearer"])
        case .wrongCode:
            Problem(
                .unauthorized, "wrong_totp", detail: "`totp` is wrong, too old or already used.", field: "totp",
                responseFields: ["WWW-Authenticate": "Bearer"])
        case .wrongConfirmation:
            Problem(
                .forbidden, "wrong_totp", detail: "`totp` is not the present code for the secret.",
                field: "totp")
        case .isEnabled:
            Problem(
                .conflict, "totp_enabled",
                detail: "The account has a second factor. Remove it before you set up another one.")
        case .isNotEnabled:
            Problem(.conflict, "totp_not_enabled", detail: "The account has no second factor.")
        case .nothingPending:
            Problem(
                .conflict, "totp_not_pending", detail: "There is no secret to confirm. Set up the second factor first.")
        }
    }
}

/// `DELETE /v1/account/totp`: removes the second factor, its recovery codes, and an unconfirmed secret. It also
/// succeeds without one, so a retry after a lost reply is safe.
struct EndSecondFactor: AccountEndpoint {
    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let proven = try await authorization.prove(request)
        try await authorization.change(as: proven) { transaction in
            let removed = try await transaction.execute(RemoveSecondFactor(accountID: proven.accountID))
            guard removed.first == true else { return }
            try await transaction.note(
                RecordSecurityEvent(accountID: proven.accountID, kind: .totpDisabled, now: proven.now))
        }
        return .noContent
    }
}

/// Finds the account's second factor, confirmed or not.
struct FindSecondFactor: AccountRead {
    struct Row: Sendable {
        let factor: StoredSecondFactor
        let isConfirmed: Bool
    }

    static let sql: AccountSQL<Self> = """
        SELECT f.sealed_secret, f.created_at, f.last_step, f.confirmed_at IS NOT NULL
        FROM saltern.second_factors f WHERE f.account_id = \(.account)
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row {
        Row(
            factor: StoredSecondFactor(
                sealedSecret: try row.next(), enrolledAt: try row.next(), lastStep: try row.next()),
            isConfirmed: try row.next())
    }
}

/// Stores an unconfirmed secret, or replaces one. Returns no row if a confirmed one exists.
struct EnrolSecondFactor: Statement {
    typealias Row = AccountID

    let accountID: AccountID
    let sealedSecret: [UInt8]
    let now: Timestamp

    static let sql: SQL<Self> = """
        INSERT INTO saltern.second_factors AS f (account_id, sealed_secret, created_at)
            VALUES (\(\.accountID), \(\.sealedSecret), \(\.now))
        ON CONFLICT (account_id) DO UPDATE SET
            sealed_secret = excluded.sealed_secret, created_at = excluded.created_at, last_step = excluded.last_step
        WHERE f.account_id = \(\.accountID) AND f.confirmed_at IS NULL
        RETURNING f.account_id
        """
}

/// Confirms a secret and uses up the presented code. Returns no row if the secret is confirmed already or was replaced.
/// ``StoreFirstCodes``, an event and ``DropOldEvents`` follow.
struct ConfirmSecondFactor: AccountWrite {
    typealias Row = AccountID

    /// The time at which the code's secret was created.
    let enrolledAt: Timestamp
    let step: Int64
    /// Stored in the account's row as a token for the statements that follow.
    let writer = Int64.random(in: .min ... .max)

    static let needsLease = true
    static let sql: CallerSQL<Self> = """
        WITH confirmed AS (
            UPDATE saltern.second_factors f SET confirmed_at = \(.now), last_step = \(\.step)
            WHERE f.account_id = \(.account) AND f.confirmed_at IS NULL AND f.created_at = \(\.enrolledAt)
                AND \(Caller.hasLiveSession)
            RETURNING f.account_id
        )
        UPDATE saltern.accounts a SET writer = \(\.writer) FROM confirmed c WHERE a.account_id = \(.account)
        RETURNING a.account_id
        """
}

/// Stores the recovery codes of a second factor that ``ConfirmSecondFactor`` has confirmed.
struct StoreFirstCodes: Statement {
    let confirmation: ConfirmSecondFactor
    let accountID: AccountID
    let codes: [SecondFactorRecoveryCodeHash]

    static let sql: SQL<Self> = """
        MERGE INTO saltern.second_factor_codes c USING (
            SELECT a.account_id, h.code_hash
            FROM saltern.accounts a CROSS JOIN unnest(\(\.codes)::bytea[]) AS h (code_hash)
            WHERE a.account_id = \(\.accountID) AND a.writer = \(\.confirmation.writer)
        ) n ON c.account_id = n.account_id AND c.code_hash = n.code_hash
        WHEN NOT MATCHED THEN INSERT (account_id, code_hash) VALUES (n.account_id, n.code_hash)
        """
}

/// Removes the account's second factor and its recovery codes. Returns true if it was confirmed, and no row if there
/// was none.
struct RemoveSecondFactor: Statement {
    typealias Row = Bool

    let accountID: AccountID

    static let sql: SQL<Self> = """
        WITH codes AS (
            DELETE FROM saltern.second_factor_codes c WHERE c.account_id = \(\.accountID)
        )
        DELETE FROM saltern.second_factors f WHERE f.account_id = \(\.accountID)
        RETURNING f.confirmed_at IS NOT NULL
        """
}

/// The statements of the second factor.
extension StatementList {
    static var secondFactor: [any Statement.Type] {
        [
            Owned<FindSecondFactor>.self, EnrolSecondFactor.self, Guarded<ConfirmSecondFactor>.self,
            StoreFirstCodes.self, RemoveSecondFactor.self, RemoveSecondFactorCodes.self, InsertSecondFactorCodes.self,
            OpenSessionWithOneTimeCode.self, OpenSessionWithRecoveryCode.self,
        ]
    }
}

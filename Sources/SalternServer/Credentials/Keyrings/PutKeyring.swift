internal import HTTPCore
internal import Postgres

/// `PUT /v1/account/keyring`: creates or replaces the caller's keyring and, in the same transaction, the recovery
/// keyring.
///
/// The removal of the recovery requires the present password key, as `DELETE /v1/account/recovery` does. Replaced
/// keyrings are kept for a time (``KeptKeyring``), with an event in the security log.
struct PutKeyring: AccountEndpoint {
    private struct Body {
        let keyring: Keyring
        let recovery: RecoveryChange
        let currentKey: PasswordKey?

        init(_ request: Request) throws {
            self = try JSONBody.read(request) { try Body(&$0) }
        }

        private init(_ members: inout JSONMembers) throws {
            keyring = try members.required("keyring", Keyring.init(json:))
            recovery = try RecoveryChange(&members)
            currentKey = try members.optional("currentPasswordKey", PasswordKey.init(json:))
            if case .removed = recovery, currentKey == nil { throw CurrentKeyMissing() }
        }
    }

    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        var preconditions = try Preconditions(request.head.fields, allowsAbsent: true)
        let body = try Body(request)
        var proven: ProvenCaller?
        if let key = body.currentKey { proven = try await authorization.prove(key) }
        while true {
            let write = WriteKeyring(
                precondition: preconditions.current, keyring: body.keyring, coversRecovery: body.recovery.isSpecified)
            let written: (row: WriteKeyring.Row, hasRecovery: Bool)
            if let proven {
                written = try await authorization.change(as: proven) { transaction in
                    try await Self.carryOut(write, body.recovery, isProven: true, authorization, transaction)
                }
            } else {
                written = try await authorization.transaction { transaction in
                    try await Self.carryOut(write, body.recovery, isProven: false, authorization, transaction)
                }
            }
            if written.row.outcome == .preconditionFailed, preconditions.move(to: written.row.revision) { continue }
            try written.row.requireAcceptance()
            let fields: HTTPFields = ["ETag": EntityTag.text(of: written.row.revision)]
            return .json(written.row.outcome == .created ? .created : .ok, fields: fields) { writer in
                writer.object { writer in
                    writer.member("revision", written.row.revision)
                    RecoveryChange.write(isSet: written.hasRecovery, to: &writer)
                }
            }
        }
    }

    /// - Returns: The result of the write, and true if there is a recovery key after it.
    private static func carryOut(
        _ write: WriteKeyring, _ recovery: RecoveryChange, isProven: Bool, _ authorization: Authorization,
        _ transaction: Transaction
    ) async throws -> (row: WriteKeyring.Row, hasRecovery: Bool) {
        let (accountID, now) = (authorization.accountID, authorization.now)
        let before = try await transaction.replaceableKeyrings(of: accountID, now: now)
        let guarded = Guarded(caller: authorization.caller, write: write)
        guard let written = try await transaction.execute(guarded).first else { throw Unauthenticated() }
        guard written.isAccepted else { return (written, written.hasRecovery) }
        // A repeated request: another device may have set another code since.
        let isRetry = written.outcome == .unchanged && write.precondition != .revision(written.revision)
        let appliesRecovery = recovery.isSpecified && !isRetry
        let replacesRecovery = appliesRecovery && recovery.replacesKeyring && written.hasRecovery
        if written.outcome == .updated || replacesRecovery {
            if let before { try await transaction.keep(before, of: accountID, isProven: isProven, now: now) }
            try await transaction.note(
                RecordSecurityEvent(accountID: accountID, kind: .keyringChanged, now: now))
        }
        guard appliesRecovery else { return (written, written.hasRecovery) }
        let hasRecovery = try await recovery.apply(
            transaction, to: accountID, hasRecovery: written.hasRecovery, now: now)
        return (written, hasRecovery)
    }
}

extension WriteKeyring.Row {
    /// True if the account has the keyring of the request.
    var isAccepted: Bool {
        switch outcome {
        case .created, .updated, .unchanged: true
        case .preconditionFailed, .recoveryNotCovered: false
        }
    }

    /// - Throws: ``KeyringProblem`` or ``RecoveryProblem/keyringRequired`` if nothing was changed.
    func requireAcceptance() throws {
        switch outcome {
        case .created, .updated, .unchanged: break
        case .preconditionFailed: throw KeyringProblem.preconditionFailed(current: current, revision: revision)
        case .recoveryNotCovered: throw RecoveryProblem.keyringRequired
        }
    }
}

/// Creates or replaces the account's keyring with its next revision.
///
/// Equal content is `unchanged` for any precondition. The request then repeats one whose reply was lost or, with the
/// present revision as precondition, changes only the recovery.
struct WriteKeyring: AccountWrite {
    let precondition: Precondition
    let keyring: Keyring
    /// True if the request covers the recovery, which would otherwise keep opening the old keys.
    let coversRecovery: Bool

    struct Row: Sendable {
        let outcome: Outcome
        /// The revision after the write, or the present one if the precondition fails.
        let revision: Int64
        /// The present keyring if the precondition fails.
        let current: [UInt8]?
        /// True if the account has a recovery key before the change.
        let hasRecovery: Bool
    }

    enum Outcome: String, Sendable, PostgresValue {
        case created
        case updated
        case unchanged
        case preconditionFailed = "precondition_failed"
        case recoveryNotCovered = "recovery_not_covered"
    }

    static let sql: CallerSQL<Self> = """
        WITH decision AS (
            SELECT a.account_id, a.keyring, a.keyring_revision, n.has_recovery,
                CASE
                    WHEN a.keyring = \(\.keyring.bytes) THEN 'unchanged'
                    WHEN (\(\.precondition.parameter) = 0 AND a.keyring IS NOT NULL)
                        OR (\(\.precondition.parameter) = -1 AND a.keyring IS NULL)
                        OR (\(\.precondition.parameter) > 0 AND (a.keyring IS NULL
                            OR a.keyring_revision <> \(\.precondition.parameter)))
                    THEN 'precondition_failed'
                    WHEN n.has_recovery AND NOT \(\.coversRecovery) THEN 'recovery_not_covered'
                    WHEN a.keyring IS NULL THEN 'created'
                    ELSE 'updated'
                END AS outcome
            FROM saltern.accounts a CROSS JOIN (
                SELECT EXISTS (SELECT FROM saltern.recoveries r WHERE r.account_id = \(.account)) AS has_recovery
            ) n
            WHERE a.account_id = \(.account) AND a.locked_at IS NULL AND \(Caller.hasLiveSession)
        ), written AS (
            UPDATE saltern.accounts a SET keyring = \(\.keyring.bytes),
                keyring_revision = \(AccountCounter.next("a.keyring_revision"))
            FROM decision d
            WHERE a.account_id = \(.account) AND a.account_id = d.account_id AND d.outcome IN ('created', 'updated')
            RETURNING a.account_id, a.keyring_revision
        )
        SELECT d.outcome, coalesce(w.keyring_revision, d.keyring_revision),
            CASE WHEN d.outcome = 'precondition_failed' THEN d.keyring END, d.has_recovery
        FROM decision d LEFT JOIN written w ON w.account_id = d.account_id
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

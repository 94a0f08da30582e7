internal import HTTPCore
internal import Postgres

/// `POST /v1/rotations/{id}/commit`: replaces all items, the credential and the keyring in one transaction, or changes
/// nothing. The other sessions end.
///
/// A repeated commit with the same new key returns the same result.
struct CommitRotation: AccountEndpoint {
    private let kdf: KDFPolicy
    private let attempts: Attempts

    init(_ parts: Dependencies) {
        kdf = parts.configuration.kdf
        attempts = parts.attempts
    }

    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let id: RotationID = try request.parameters.require("id")
        let (currentKey, new) = try JSONBody.read(request) { members in
            (try members.required("currentPasswordKey", PasswordKey.init(json:)), try NewCredential(&members, kdf))
        }
        let outcome = try await authorization.replaceKey(
            .passwordKey(currentKey), by: new, use: authorization.longUse
        ) { transaction, proven in
            try await RotationCommit(id: id, by: proven, to: new, attempts).apply(transaction)
        }
        return .json { writer in
            writer.object { writer in
                writer.member("items", outcome.items)
                writer.member("dropped", outcome.dropped)
                writer.member("revision", outcome.revision)
                outcome.credential.write(new, endsSession: false, attempts.devices, to: &writer)
            }
        }
    }
}

/// The steps of a commit, in a transaction that holds the account's row `FOR UPDATE`.
///
/// Items are replaced in slices, and kept contents expire in slices, so no statement approaches its time limit. All
/// slices are in one transaction.
struct RotationCommit: Sendable {
    let id: RotationID
    let proven: ProvenCaller
    let new: NewCredential
    private let attempts: Attempts

    init(id: RotationID, by proven: ProvenCaller, to new: NewCredential, _ attempts: Attempts) {
        self.id = id
        self.proven = proven
        self.new = new
        self.attempts = attempts
    }

    /// The result of a commit.
    struct Outcome: Sendable {
        /// The number of replaced items.
        let items: Int64
        /// The number of staged items whose items were deleted meanwhile.
        let dropped: Int64
        /// The account's revision.
        let revision: Int64
        let credential: CredentialChange.Outcome
    }

    private var accountID: AccountID { proven.accountID }

    /// Applies the commit. After an error the transaction must be rolled back.
    ///
    /// - Throws: 404, ``RotationProblem``, ``CredentialProblem``, ``WrongCurrentKey``, or a `PostgresError`.
    func apply(_ transaction: Transaction) async throws -> Outcome {
        let find = FindRotation(id: id, now: proven.now)
        guard let rotation = try await transaction.execute(Owned(accountID: accountID, read: find)).first else {
            throw Problem.notFound
        }
        if rotation.isCommitted {
            guard new.verifier == proven.verifier else { throw RotationProblem.committed }
            let holders = try await transaction.execute(Owned(accountID: accountID, read: FindKeyHolders())).first
            return Outcome(
                items: rotation.items, dropped: 0, revision: rotation.revision,
                credential: CredentialChange.Outcome(
                    sessionsEnded: 0, keyringRevision: rotation.keyringRevision,
                    hasRecovery: holders?.hasRecovery ?? false, device: proven.device))
        }
        // The new key is in place, but not through this rotation.
        if proven.hasBeenReplaced { throw WrongCurrentKey() }
        // Checked before the work.
        try await new.requireKeyHolders(of: accountID, changesKeys: true, transaction)
        try await refuseUnready(transaction)
        let (items, dropped, revision) = try await swapItems(transaction)
        try await transaction.expireKept(of: accountID)
        _ = try await transaction.execute(
            CloseRotation(
                accountID: accountID, id: id, now: proven.now, expiresAt: proven.now + Rotation.lifetime, items: items))
        let change = CredentialChange(by: proven, to: new, event: .rotationCommitted, attempts)
        let credential = try await change.apply(transaction)
        return Outcome(items: items, dropped: dropped, revision: revision, credential: credential)
    }

    private func refuseUnready(_ transaction: Transaction) async throws {
        let (_, unready) = try await transaction.execute(
            JoinWholeSets(), FindUnready(accountID: accountID, rotationID: id))
        guard unready.isEmpty else {
            throw RotationProblem.incomplete(
                missing: unready.filter { !$0.isStaged }.map(\.id), changed: unready.filter(\.isStaged).map(\.id))
        }
    }

    private func swapItems(
        _ transaction: Transaction
    ) async throws -> (items: Int64, dropped: Int64, revision: Int64) {
        let taking = TakeRevisions(accountID: accountID, rotationID: id)
        guard let taken = try await transaction.execute(taking).first else { throw Unauthenticated() }
        var next = taken.revision - taken.items
        var dropped: Int64 = 0
        while true {
            let swap = SwapItems(accountID: accountID, rotationID: id, revision: next, now: proven.now)
            guard let slice = try await transaction.execute(swap).first, slice.taken > 0 else { break }
            next += slice.swapped
            dropped += slice.taken - slice.swapped
        }
        // Each item has the revision that was taken for it. Otherwise the transaction is rolled back.
        guard next == taken.revision else { throw Problem.internalError }
        return (taken.items, dropped, taken.revision)
    }
}

/// Makes the planner join whole sets until the transaction ends. It has no statistics of rows written a moment ago,
/// assumes a few, and would use nested loops.
struct JoinWholeSets: Statement {
    typealias Row = String

    static let sql: SQL<Self> = "SELECT set_config('enable_nestloop', 'off', true)"
}

/// Finds live items that prevent a commit: not staged, or staged from an earlier revision. The account's row must be
/// locked, so the result stays valid.
struct FindUnready: Statement {
    let accountID: AccountID
    let rotationID: RotationID

    struct Row: Sendable {
        let id: ItemID
        let isStaged: Bool
    }

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT i.item_id, s.item_id IS NOT NULL
        FROM saltern.items i LEFT JOIN saltern.rotation_items s
            ON s.account_id = \(\.accountID) AND s.rotation_id = \(\.rotationID) AND s.item_id = i.item_id
        WHERE i.account_id = \(\.accountID) AND NOT i.deleted AND s.base_revision IS DISTINCT FROM i.revision
        ORDER BY i.item_id
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

/// Takes a revision of the account for each replaced item, and sets the total of sealed bytes. The number of items
/// stays.
struct TakeRevisions: Statement {
    let accountID: AccountID
    let rotationID: RotationID

    struct Row: Sendable {
        /// The last of them, which is the account's new revision.
        let revision: Int64
        let items: Int64
    }

    static let sql: SQL<Self> = """
        WITH staged AS (
            SELECT count(*) AS items,
                coalesce(sum(\(SealedSize.bytes(of: "s"))), 0)::bigint AS bytes
            FROM saltern.rotation_items s JOIN saltern.items i ON i.account_id = s.account_id AND i.item_id = s.item_id
            WHERE s.account_id = \(\.accountID) AND s.rotation_id = \(\.rotationID) AND i.account_id = \(\.accountID)
                AND NOT i.deleted
        )
        UPDATE saltern.accounts a SET revision = \(AccountCounter.next("a.revision", by: "n.items")),
            item_bytes = n.bytes
        FROM staged n WHERE a.account_id = \(\.accountID)
        RETURNING a.revision, n.items
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

/// Moves a slice of staged items into the items, each with the next revision. Staged items that were deleted meanwhile
/// are dropped.
struct SwapItems: Statement {
    let accountID: AccountID
    let rotationID: RotationID
    /// The revision before the slice's first one.
    let revision: Int64
    let now: Timestamp

    struct Row: Sendable {
        /// The number of staged items in the slice.
        let taken: Int64
        /// The number of replaced items.
        let swapped: Int64
    }

    static let sql: SQL<Self> = """
        WITH \(StagedItems.bound(of: "\(\.rotationID)", "\(\.accountID)")), taken AS (
            DELETE FROM saltern.rotation_items s
            WHERE s.account_id = \(\.accountID) AND s.rotation_id = \(\.rotationID) AND s.item_id <= (SELECT b.item_id
                FROM bound b)
            RETURNING s.item_id, s.format, s.iterations, s.title, s.body
        ), numbered AS (
            SELECT t.*, row_number() OVER (ORDER BY t.item_id) AS position
            FROM taken t
            WHERE EXISTS (
                SELECT FROM saltern.items l WHERE l.account_id = \(\.accountID) AND l.item_id = t.item_id
                    AND NOT l.deleted)
        ), swapped AS (
            UPDATE saltern.items i
            SET revision = \(\.revision) + n.position, format = n.format, iterations = n.iterations, title = n.title,
                body = n.body, updated_at = \(\.now), kept_at = NULL
            FROM numbered n
            WHERE i.account_id = \(\.accountID) AND i.item_id = n.item_id
            RETURNING i.item_id
        )
        SELECT (SELECT count(*) FROM taken), (SELECT count(*) FROM swapped)
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

/// Records a commit of a rotation until `expiresAt`, so that the request can be repeated.
struct CloseRotation: Statement {
    let accountID: AccountID
    let id: RotationID
    let now: Timestamp
    let expiresAt: Timestamp
    /// The number of replaced items.
    let items: Int64

    static let sql: SQL<Self> = """
        UPDATE saltern.rotations r SET committed_at = \(\.now), expires_at = \(\.expiresAt), item_count = \(\.items),
            item_bytes = 0
        WHERE r.account_id = \(\.accountID) AND r.rotation_id = \(\.id)
        """
}

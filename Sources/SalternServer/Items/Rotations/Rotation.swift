internal import HTTPCore
internal import Postgres

/// A re-encryption of all items of an account. New contents are staged in batches, and the commit replaces all of them
/// together with the credential.
enum Rotation {
    /// The time for staging and commit, and the time for which a commit can be repeated.
    static let lifetime = Duration.seconds(86_400)
    /// The maximum number of items in one request.
    static let batchLimit = 500
    /// Maximum body of a request that stages items, in bytes of JSON: the largest item of any plan in base64 with line
    /// breaks, and other members.
    static let requestLimit = 24 * 1_048_576
    /// Maximum number of JSON values in it: all members of as many items, and a few others.
    static let valueLimit = batchLimit * 8 + 64
    /// Deadline of a commit. 10,000 items take seconds; the gigabytes of a large plan take minutes.
    static let commitDeadline = Duration.seconds(600)
    /// Deadline of removing staged items.
    static let discardDeadline = Duration.seconds(120)
}

/// Identifies a rotation.
typealias RotationID = Identifier<Rotation>

/// Reasons to reject a step of a rotation.
enum RotationProblem: ProblemConvertible {
    /// The rotation is committed and accepts no further items.
    case committed
    /// Items are not staged, or have changed since. Nothing was changed.
    case incomplete(missing: [ItemID], changed: [ItemID])
    /// A batch names an item twice. Contains the index of the second.
    case duplicateIdentifier(index: Int)

    var problem: Problem {
        switch self {
        case .committed:
            Problem(.conflict, "rotation_committed", detail: "The rotation was committed. Start another one.")
        case .incomplete(let missing, let changed):
            Problem(
                .conflict, "rotation_incomplete",
                detail:
                    "Some items have changed: see `items`. Stage their present content, and commit again. Nothing was changed.",
                members: [
                    (name: "missing", value: .array(missing.map { .string($0.description) })),
                    (name: "changed", value: .array(changed.map { .string($0.description) })),
                ])
        case .duplicateIdentifier(let index):
            Problem(
                .unprocessableContent, "duplicate_id",
                detail: "`operations` names an item more than once. Send each item once.",
                field: "items[\(index)].id")
        }
    }
}

/// `POST /v1/rotations`: opens a rotation and deletes an older one with its staged items.
struct OpenRotation: AccountEndpoint {
    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let proven = try await authorization.prove(request)
        let id = RotationID.random()
        let expiresAt = proven.now + Rotation.lifetime
        let account = try await authorization.change(as: proven, use: authorization.longUse) { transaction in
            for older in try await transaction.execute(FindRotations(accountID: proven.accountID)) {
                try await StagedItems.remove(of: older, proven.accountID) { try await transaction.execute($0) }
                _ = try await transaction.execute(RemoveRotation(accountID: proven.accountID, id: older))
            }
            return try await transaction.execute(
                InsertRotation(accountID: proven.accountID, id: id, now: proven.now, expiresAt: expiresAt),
                FindExtent(accountID: proven.accountID)
            ).1.first
        }
        guard let account else { throw Unauthenticated() }
        return .json(.created) { writer in
            writer.object { writer in
                writer.member("id", id)
                writer.member("expiresAt", expiresAt)
                writer.member("items", account.items)
                writer.member("revision", account.revision)
            }
        }
    }
}

/// `DELETE /v1/rotations/{id}`: deletes a rotation and its staged items. The items stay unchanged.
struct DiscardRotation: AccountEndpoint {
    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let id: RotationID = try request.parameters.require("id")
        // In slices, so that other devices' writes never wait for long. The rotation's row is removed last.
        while true {
            guard let state = try await authorization.write(DiscardStaged(id: id)).first else { throw Problem.notFound }
            if state.isCommitted { throw RotationProblem.committed }
            if state.isGone { return .noContent }
        }
    }
}

/// Finds the account's rotations, including committed and expired ones.
struct FindRotations: Statement {
    typealias Row = RotationID

    let accountID: AccountID

    static let isReadOnly = true
    static let sql: SQL<Self> = "SELECT r.rotation_id FROM saltern.rotations r WHERE r.account_id = \(\.accountID)"
}

struct InsertRotation: Statement {
    let accountID: AccountID
    let id: RotationID
    let now: Timestamp
    let expiresAt: Timestamp

    static let sql: SQL<Self> = """
        INSERT INTO saltern.rotations (account_id, rotation_id, opened_at, expires_at)
            VALUES (\(\.accountID), \(\.id), \(\.now), \(\.expiresAt))
        """
}

/// Finds the number of items to rotate and the account's revision.
struct FindExtent: Statement {
    let accountID: AccountID

    struct Row: Sendable {
        let items: Int64
        /// The account's revision.
        let revision: Int64
    }

    static let isReadOnly = true
    static let sql: SQL<Self> =
        "SELECT a.item_count, a.revision FROM saltern.accounts a WHERE a.account_id = \(\.accountID)"

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

/// Finds a rotation that has not expired.
struct FindRotation: AccountRead {
    let id: RotationID
    let now: Timestamp

    struct Row: Sendable {
        let isCommitted: Bool
        /// The number of staged items or, after the commit, of replaced ones.
        let items: Int64
        /// The account's revision.
        let revision: Int64
        /// The revision of the account's keyring. Nil without one.
        let keyringRevision: Int64?
    }

    static let sql: AccountSQL<Self> = """
        SELECT r.committed_at IS NOT NULL, r.item_count, a.revision,
            CASE WHEN a.keyring IS NOT NULL THEN a.keyring_revision END
        FROM saltern.rotations r JOIN saltern.accounts a ON a.account_id = r.account_id
        WHERE r.account_id = \(.account) AND a.account_id = \(.account) AND r.rotation_id = \(\.id)
            AND r.expires_at > \(\.now)
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

/// Removes a rotation without staged items.
struct RemoveRotation: Statement {
    let accountID: AccountID
    let id: RotationID

    static let sql: SQL<Self> =
        "DELETE FROM saltern.rotations r WHERE r.account_id = \(\.accountID) AND r.rotation_id = \(\.id)"
}

/// Removes a slice of a rotation's staged items, or the rotation if none is left. It changes nothing after a commit.
/// From the first slice on the rotation counts as expired, so that no further items are staged.
struct DiscardStaged: AccountWrite {
    let id: RotationID

    struct Row: Sendable {
        let isCommitted: Bool
        /// True if the rotation is removed.
        let isGone: Bool
    }

    static let needsLease = true
    static let sql: CallerSQL<Self> = """
        WITH rotation AS (
            SELECT r.account_id, r.rotation_id, r.committed_at IS NOT NULL AS is_committed
            FROM saltern.rotations r
            WHERE r.account_id = \(.account) AND r.rotation_id = \(\.id) AND \(Caller.hasLiveSession)
        ), \(StagedItems.bound(of: "\(\.id)", "\(.account)")), gone AS (
            DELETE FROM saltern.rotation_items s
            WHERE s.account_id = \(.account) AND s.rotation_id = \(\.id) AND s.item_id <= (SELECT b.item_id
                FROM bound b)
                AND EXISTS (SELECT FROM rotation r WHERE NOT r.is_committed)
        ), expired AS (
            UPDATE saltern.rotations t SET expires_at = least(t.expires_at, \(.now)) FROM rotation r
            WHERE t.account_id = \(.account) AND t.rotation_id = r.rotation_id AND NOT r.is_committed
                AND EXISTS (SELECT FROM bound)
        ), closed AS (
            DELETE FROM saltern.rotations t USING rotation r
            WHERE t.account_id = \(.account) AND t.rotation_id = r.rotation_id AND NOT r.is_committed
                AND NOT EXISTS (SELECT FROM bound)
        )
        SELECT r.is_committed, NOT r.is_committed AND NOT EXISTS (SELECT FROM bound) FROM rotation r
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

/// The statements of rotations.
extension StatementList {
    static var rotations: [any Statement.Type] {
        [
            FindRotations.self, InsertRotation.self, FindExtent.self, Owned<FindRotation>.self, RemoveRotation.self,
            RemoveStaged.self, Guarded<StageBatch>.self, StoreStaged.self, Guarded<RemoveStrays>.self,
            Guarded<DiscardStaged>.self, JoinWholeSets.self, FindUnready.self, TakeRevisions.self, SwapItems.self,
            ExpireSomeContents.self, CloseRotation.self,
        ]
    }
}

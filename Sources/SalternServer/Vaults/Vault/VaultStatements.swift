internal import Postgres

/// Finds the number of an account's memberships and their limits. The account's row must be locked.
struct CountMemberships: Statement {
    let accountID: AccountID
    /// A vault that does not count.
    var except: VaultID?

    struct Row: Sendable {
        let plan: String
        let owned: Int64
        let maxOwned: Int64
        let all: Int64
        let maxAll: Int64
    }

    static let sql: SQL<Self> = """
        SELECT a.plan, n.owned, p.max_vaults, n.number, p.max_memberships
        FROM saltern.accounts a JOIN saltern.plans p ON p.plan = a.plan CROSS JOIN (
            SELECT count(*) FILTER (WHERE m.owns) AS owned, count(*) AS number
            FROM saltern.memberships m
            WHERE m.account_id = \(\.accountID) AND m.vault_id IS DISTINCT FROM \(\.except)
        ) n
        WHERE a.account_id = \(\.accountID) AND a.locked_at IS NULL
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }

    /// Returns the exceeded limit if the account gets one more.
    static func exceeded(_ row: Row, owning: Bool) -> ItemProblem? {
        if owning, row.owned >= row.maxOwned {
            return .quotaExceeded(limit: "vaults", allowed: row.maxOwned, used: row.owned)
        }
        guard row.all >= row.maxAll else { return nil }
        return .quotaExceeded(limit: "memberships", allowed: row.maxAll, used: row.all)
    }
}

/// SQL for two columns: the number of vaults that an account owns, and of all on its list.
enum MembershipCount {
    static func sql<Root, Context>(of account: SQLTemplate<Root, Context>) -> SQLTemplate<Root, Context> {
        """
        (SELECT count(*) FROM saltern.memberships m WHERE m.account_id = \(account) AND m.owns),
            (SELECT count(*) FROM saltern.memberships m WHERE m.account_id = \(account))
        """
    }
}

/// Adds a vault to an account's list. ``MoveListRevision`` precedes it.
struct InsertMembership: Statement {
    let accountID: AccountID
    let vaultID: VaultID
    let memberID: MemberID
    let owns: Bool
    let now: Timestamp

    static let sql: SQL<Self> = """
        INSERT INTO saltern.memberships (account_id, vault_id, member_id, owns, joined_at)
            VALUES (\(\.accountID), \(\.vaultID), \(\.memberID), \(\.owns), \(\.now))
        ON CONFLICT (account_id, vault_id) DO UPDATE
        SET member_id = excluded.member_id, owns = excluded.owns, joined_at = excluded.joined_at
        """
}

/// Takes the account's next revision for a change of its list of vaults, so that its streams read the list again.
struct MoveListRevision: Statement {
    let accountID: AccountID

    static let sql: SQL<Self> = """
        UPDATE saltern.accounts a
        SET revision = \(AccountCounter.next("a.revision")), vaults_revision = \(AccountCounter.next("a.revision"))
        WHERE a.account_id = \(\.accountID)
        """
}

extension Transaction {
    /// Adds a vault to an account's list. The account's row is locked.
    func enqueue(listing membership: InsertMembership) {
        enqueue(MoveListRevision(accountID: membership.accountID))
        enqueue(membership)
    }
}

/// Removes vaults from an account's list.
struct RemoveMemberships: Statement {
    let accountID: AccountID
    let vaultIDs: [VaultID]

    static let sql: SQL<Self> = """
        DELETE FROM saltern.memberships m
        WHERE m.account_id = \(\.accountID) AND m.vault_id = ANY(\(\.vaultIDs)::uuid[])
        """
}

/// Finds the vaults on an account's list, in the order of their ids.
struct FindMemberships: AccountRead {
    struct Row: Sendable {
        let vaultID: VaultID
        let owns: Bool
    }

    static let sql: AccountSQL<Self> = """
        SELECT m.vault_id, m.owns FROM saltern.memberships m WHERE m.account_id = \(.account) ORDER BY m.vault_id
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

/// Stores a new vault. Returns no row if there is one with this id.
struct InsertVault: Statement {
    typealias Row = VaultID

    let vaultID: VaultID
    let ownerAccount: AccountID
    let founder: MemberID
    let plan: String
    let headHash: [UInt8]
    let keyID: Int32
    let now: Timestamp

    static let sql: SQL<Self> = """
        INSERT INTO saltern.vaults
            (vault_id, owner_account, owner_member, plan, revision, head_number, head_hash, key_id, generation_number,
            recovered_base, created_at)
        SELECT \(\.vaultID), \(\.ownerAccount), \(\.founder), \(\.plan), 0, 1, \(\.headHash), \(\.keyID), 1,
            b.revision_base, \(\.now)
        FROM saltern.installation b
        WHERE b.singleton
        ON CONFLICT (vault_id) DO NOTHING
        RETURNING vault_id
        """
}

/// Takes the vault's next revision for an entry of its log. Returns it.
struct MoveHead: Statement {
    typealias Row = Int64

    let vaultID: VaultID
    let number: Int64
    let hash: [UInt8]
    let keyID: Int32
    /// The entry that began the present generation.
    let generationNumber: Int64
    let isRotationDue: Bool
    /// The member that owns the vault.
    let owner: MemberID
    /// The number above which entries are provisional. Nil leaves it.
    let settled: Int64?

    static let sql: SQL<Self> = """
        UPDATE saltern.vaults a
        SET revision = \(AccountCounter.next("a.revision")), head_number = \(\.number), head_hash = \(\.hash),
            key_id = \(\.keyID), rotation_due = \(\.isRotationDue), generation_number = \(\.generationNumber),
            owner_member = \(\.owner), settled_number = coalesce(\(\.settled), a.settled_number)
        WHERE a.vault_id = \(\.vaultID)
        RETURNING a.revision
        """
}

/// Gives the plan of an account to a vault that it owns.
struct MoveVaultPlan: Statement {
    let vaultID: VaultID
    let ownerAccount: AccountID
    let plan: String

    static let sql: SQL<Self> = """
        UPDATE saltern.vaults a SET plan = \(\.plan)
        WHERE a.vault_id = \(\.vaultID) AND a.owner_account = \(\.ownerAccount)
        """
}

/// Gives a vault to another account.
struct MoveOwner: Statement {
    let vaultID: VaultID
    let ownerAccount: AccountID
    let plan: String

    static let sql: SQL<Self> = """
        UPDATE saltern.vaults a SET owner_account = \(\.ownerAccount), plan = \(\.plan)
        WHERE a.vault_id = \(\.vaultID)
        """
}

/// Adds members, or changes their roles or keys.
struct PutMembers: Statement {
    let vaultID: VaultID
    let members: [MemberID]
    /// The account of a new member. Without one, its device claims it. A member that exists keeps its account.
    let holder: AccountID?
    let roles: [Int32]
    /// The entries that gave the members their roles or keys.
    let since: [Int64]

    static let sql: SQL<Self> = """
        INSERT INTO saltern.vault_members AS m (vault_id, member_id, holder, is_unclaimed, role, since)
        SELECT \(\.vaultID), n.member_id, \(\.holder)::uuid, \(\.holder)::uuid IS NULL, n.role, n.since
        FROM unnest(\(\.members)::uuid[], \(\.roles)::integer[], \(\.since)::bigint[]) AS n(member_id, role, since)
        ON CONFLICT (vault_id, member_id) DO UPDATE SET role = excluded.role, since = excluded.since
        """
}

/// Removes the accounts of former members. That of a writer stays as long as its allowance for deletions counts.
struct ForgetFormerHolders: Statement {
    let vaultID: VaultID
    /// The start of the latest period of allowances that has ended by now.
    let since: Timestamp

    static let sql: SQL<Self> = """
        UPDATE saltern.vault_members m SET holder = NULL
        WHERE m.vault_id = \(\.vaultID) AND m.role = 0 AND m.holder IS NOT NULL
            AND (m.discarded_since IS NULL OR m.discarded_since <= \(\.since))
        """
}

/// Finds out if an account owns a vault: it is the owner of the plan, and its member owns the vault by the log.
struct IsOwner: Statement {
    /// The time at which the vault's recovery began, if it recovers.
    typealias Row = Timestamp?

    let vaultID: VaultID
    let accountID: AccountID

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT \(VaultRecovery.began) FROM saltern.vaults a
        WHERE a.vault_id = \(\.vaultID) AND a.owner_account = \(\.accountID) AND EXISTS (
            SELECT FROM saltern.vault_members m
            WHERE m.vault_id = \(\.vaultID) AND m.member_id = a.owner_member AND m.holder = \(\.accountID))
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Timestamp? { try row.next() }
}

/// Removes a deleted account from its member. The member stays in the log.
struct ForgetHolder: Statement {
    let vaultID: VaultID
    let accountID: AccountID

    static let sql: SQL<Self> = """
        UPDATE saltern.vault_members m SET holder = NULL
        WHERE m.vault_id = \(\.vaultID) AND m.holder = \(\.accountID)
        """
}

/// Finds the members of a vault that have not left.
struct FindMembers: Statement {
    let vaultID: VaultID

    struct Row: Sendable {
        let id: MemberID
        let holder: AccountID?
        /// True if no box of the present generation is stored.
        let isBoxMissing: Bool
        /// The latest head that the member has seen, with its signature.
        let seenNumber: Int64
        let seenHash: [UInt8]?
        let seenSignature: [UInt8]?
    }

    static let isReadOnly = true
    // Materialized, and in the order of the index of present members: for the other order the planner would read former
    // ones, too.
    static let sql: SQL<Self> = """
        WITH live AS MATERIALIZED (
            SELECT m.vault_id, m.member_id, m.holder, m.seen_number, m.seen_hash, m.seen_signature
            FROM saltern.vault_members m WHERE m.vault_id = \(\.vaultID) AND \(VaultSeat.isLive("m")) ORDER BY m.holder
        )
        SELECT l.member_id, l.holder, \(KeyBox.isMissing("l", vault: "= \(\.vaultID)")), l.seen_number, l.seen_hash,
            l.seen_signature
        FROM live l ORDER BY l.member_id
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

/// A vault as a member sees it.
struct VaultHeader: DecodableRow {
    let id: VaultID
    let memberID: MemberID
    let role: VaultRole
    let isOwner: Bool
    let revision: Int64
    let headNumber: Int64
    let headHash: [UInt8]
    let isRotationDue: Bool
    let itemCount: Int64
    let itemBytes: Int64
    let maxItems: Int64
    let maxItemBytes: Int64
    let maxBytes: Int64
    let maxMembers: Int64
    let deletedDays: Int32
    let createdAt: Timestamp
    /// The time of the restore after which the vault has not recovered yet.
    let recoveryBegan: Timestamp?
    let isBoxMissing: Bool

    /// The columns that ``init(row:)`` reads.
    static func columns<Root>(_ account: SQL<Root>, vault: SQL<Root>) -> SQL<Root> {
        """
        a.vault_id, live.member_id, live.role, a.owner_account = \(account), \(AccountCounter.head("a.revision")),
            a.head_number, a.head_hash, a.rotation_due, a.item_count, a.item_bytes, p.vault_items, p.max_item_bytes,
            p.vault_bytes, p.max_vault_members, p.deleted_days, a.created_at, \(VaultRecovery.began),
            \(KeyBox.isMissing("live", vault: vault))
        """
    }

    init(row: inout RowReader) throws(PostgresError) {
        id = try row.next()
        memberID = try row.next()
        role = VaultRole(rawValue: try row.next()) ?? .ended
        isOwner = try row.next()
        revision = try row.next()
        headNumber = try row.next()
        headHash = try row.next()
        isRotationDue = try row.next()
        itemCount = try row.next()
        itemBytes = try row.next()
        maxItems = try row.next()
        maxItemBytes = try row.next()
        maxBytes = try row.next()
        maxMembers = try row.next()
        deletedDays = try row.next()
        createdAt = try row.next()
        recoveryBegan = try row.next()
        isBoxMissing = try row.next()
    }
}

/// Finds the vaults among `ids` that an account is a member of.
struct FindVaults: Statement {
    typealias Row = VaultHeader

    let ids: [VaultID]
    let accountID: AccountID

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT \(VaultHeader.columns("\(\.accountID)", vault: "= ANY(\(\.ids)::uuid[])"))
        FROM saltern.vaults a JOIN saltern.vault_members live ON live.vault_id = a.vault_id
        JOIN saltern.plans p ON p.plan = a.plan
        WHERE a.vault_id = ANY(\(\.ids)::uuid[]) AND live.vault_id = ANY(\(\.ids)::uuid[])
            AND live.holder = \(\.accountID) AND \(VaultSeat.isLive("live"))
        ORDER BY a.vault_id
        """
}

/// The statements of shared vaults.
extension StatementList {
    static var vaults: [any Statement.Type] {
        [
            CountMemberships.self, InsertMembership.self, MoveListRevision.self, RemoveMemberships.self,
            Owned<FindMemberships>.self, InsertVault.self, MoveHead.self, MoveOwner.self, MoveVaultPlan.self,
            PutMembers.self, ForgetFormerHolders.self, CountEntries.self, FindEntry.self, FindInviteEntries.self,
            RemoveReplacedSeals.self, RemoveExpiredInvitations.self, FindMembers.self, FindVaults.self,
            FindEntries.self, InsertEntries.self, InsertBoxes.self, RemoveOtherBoxes.self, FindBoxes.self,
            RemoveBox.self, InsertPreviousKeys.self, FindPreviousKeys.self, IsOwner.self, FindItemAbove.self,
            FindUnlockedAccounts.self, FindHolder.self, CountOpening.self, FindOpenings.self, FindSealLimit.self,
            InsertSealList.self, RemoveEarlySeals.self, RemoveFormerSeals.self, FindSealList.self, FindSeals.self,
            RemoveSeals.self, StoreSeen.self, FindVaultState.self, EndRecovery.self, BindMember.self,
            FindOtherMember.self, FindHeldVaults.self, MeasureDiscarded.self, CountDiscarded.self,
            FindExpiredInvitations.self, StepInVault<LockAccount>.self, StepInVault<FindExpiredContents>.self,
            StepInVault<FindExpiredVersions>.self, StepInVault<FindOldTombstones>.self,
            StepInVault<RemoveContents>.self, StepInVault<RemoveVersions>.self, StepInVault<RemoveTombstones>.self,
            StepInVault<FindDueTombstones>.self, StepInVault<FindDueContents>.self, StepInVault<FindDueVersions>.self,
            ForgetHolder.self, RemovePreviousKeys.self, InsertInvitation.self, FindInvitation.self,
            RemoveInvitations.self, LockVaultForJoin.self, SetOwnership.self, RemoveBoxes.self, RemoveEntries.self,
            RemoveMembers.self, RemoveVault.self, FindSeat.self, IsMember.self, LockVault.self, HoldSession.self,
        ]
    }
}

internal import Postgres

/// The names in statements about the items of a vault, in place of those in statements about an account's items. The
/// tables have the same columns.
enum VaultNames {
    private static let names = [
        ("saltern.accounts", "saltern.vaults"), ("saltern.items", "saltern.vault_items"),
        ("saltern.deleted_contents", "saltern.vault_deleted_contents"),
        ("saltern.replaced_contents", "saltern.vault_replaced_contents"), ("account_id", "vault_id"),
        (
            "saltern.plans",
            """
            (SELECT q.plan, q.vault_items AS max_items, q.max_item_bytes, q.vault_bytes AS max_bytes, q.deleted_days \
            FROM saltern.plans q)
            """
        ),
    ]

    static func rename(_ sql: String) -> String {
        names.reduce(sql) { sql, name in sql.replacing(name.0, with: name.1) }
    }
}

/// An ``ItemRead`` of a vault.
struct OwnedByVault<Read: ItemRead>: Statement {
    let vaultID: VaultID
    let read: Read

    private var owner: AccountID { AccountID(vaultID.uuid) }

    static var sql: SQL<Self> { Read.sql.lifted(\.read, \.owner).renamed(VaultNames.rename) }
    static var isReadOnly: Bool { true }

    func bind(to parameters: inout Parameters) { Read.sql.bind(read, owner, to: &parameters) }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Read.Row { try Read.decode(&row) }
}

/// An ``ItemWrite`` to a vault.
struct GuardedInVault<Write: ItemWrite>: Statement {
    let caller: Caller
    let write: Write

    static var sql: SQL<Self> { Write.vaultSQL.lifted(\.write, \.caller).renamed(VaultNames.rename) }
    var bytesInGroup: Int? { Write.joinsGroups ? write.sealedByteCount + 256 : nil }

    func bind(to parameters: inout Parameters) { Write.vaultSQL.bind(write, caller, to: &parameters) }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Write.Row { try Write.decode(&row) }
}

/// An ``ItemStep``, or a statement of the purge, on vaults.
struct StepInVault<Step: Statement>: Statement {
    let step: Step

    private var nothing: NoContext { NoContext() }

    static var sql: SQL<Self> { Step.sql.lifted(\.step, \.nothing).renamed(VaultNames.rename) }
    static var isReadOnly: Bool { Step.isReadOnly }
    var bytesInGroup: Int? { step.bytesInGroup }

    func bind(to parameters: inout Parameters) { step.bind(to: &parameters) }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Step.Row { try Step.decode(&row) }
}

/// The allowance of writers for deletions. Deleted contents of all members share the vault's budget, so the junk of one
/// writer would otherwise remove those of the others.
///
/// It belongs to the account: a member that leaves and joins again has no other one.
enum Discarding {
    /// The period of an allowance.
    static let period = Duration.seconds(7 * 86_400)
    /// The allowance is the vault's limit of bytes, and of items, divided by this number.
    static let divisor: Int64 = 4

    /// A counter of the present period, of the member `m`.
    fileprivate static func present<Root>(_ counter: SQLFragment, since: SQL<Root>) -> SQL<Root> {
        "CASE WHEN m.discarded_since > \(since) THEN \(counter) ELSE 0 END"
    }
}

/// Measures items that a writer is about to delete. Returns no row if they exceed its allowance.
struct MeasureDiscarded: Statement {
    let vaultID: VaultID
    let accountID: AccountID
    let items: [ItemID]
    /// The start of the latest period that has ended by now.
    let since: Timestamp

    struct Row: Sendable {
        let bytes: Int64
        let items: Int64
        /// The vault's revision before the deletion.
        let revision: Int64
    }

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT d.bytes, d.items, a.revision
        FROM saltern.vaults a JOIN saltern.plans p ON p.plan = a.plan CROSS JOIN (
            SELECT coalesce(sum(\(SealedSize.bytes(of: "i"))), 0)::bigint AS bytes, count(*) AS items
            FROM saltern.vault_items i
            WHERE i.vault_id = \(\.vaultID) AND i.item_id = ANY(\(\.items)::uuid[]) AND NOT i.deleted
        ) d CROSS JOIN (
            SELECT coalesce(sum(\(Discarding.present("m.discarded_bytes", since: "\(\.since)"))), 0) AS bytes,
                coalesce(sum(\(Discarding.present("m.discarded_items", since: "\(\.since)"))), 0) AS items
            FROM saltern.vault_members m WHERE m.vault_id = \(\.vaultID) AND m.holder = \(\.accountID)
        ) u
        WHERE a.vault_id = \(\.vaultID)
            AND (p.deleted_days = 0 OR d.items = 0
                OR (p.vault_bytes / \(Discarding.divisor) >= d.bytes + u.bytes
                    AND greatest(p.vault_items / \(Discarding.divisor), 1) >= d.items + u.items))
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

/// Counts deleted items for a writer's allowance, if the vault's revision shows that they were deleted.
struct CountDiscarded: Statement {
    let measured: MeasureDiscarded
    let found: MeasureDiscarded.Row
    let memberID: MemberID
    let now: Timestamp

    static let sql: SQL<Self> = """
        UPDATE saltern.vault_members m
        SET discarded_bytes = \(\.found.bytes)
                + \(Discarding.present("m.discarded_bytes", since: "\(\.measured.since)")),
            discarded_items = \(\.found.items)
                + \(Discarding.present("m.discarded_items", since: "\(\.measured.since)")),
            discarded_since =
                CASE WHEN m.discarded_since > \(\.measured.since) THEN m.discarded_since ELSE \(\.now) END
        FROM saltern.vaults a
        WHERE m.vault_id = \(\.measured.vaultID) AND m.member_id = \(\.memberID)
            AND a.vault_id = \(\.measured.vaultID) AND a.revision > \(\.found.revision)
        """
}

/// The statements of items of shared vaults.
extension StatementList {
    static var itemsInVaults: [any Statement.Type] {
        [
            OwnedByVault<FindItem>.self, OwnedByVault<FindItemPart>.self, OwnedByVault<FindItems>.self,
            OwnedByVault<FindItemHeaders>.self, OwnedByVault<FindSliceEnd>.self, OwnedByVault<FindChanges>.self,
            OwnedByVault<FindChangeHeaders>.self, OwnedByVault<FindVersions>.self, OwnedByVault<FindVersion>.self,
            OwnedByVault<FindVersionPart>.self, OwnedByVault<HasItem>.self, GuardedInVault<WriteItem>.self,
            GuardedInVault<ReplaceItem>.self, GuardedInVault<CreateItem>.self, GuardedInVault<DecideDeletion>.self,
            GuardedInVault<DeleteOneItem>.self, GuardedInVault<RestoreItemRow>.self, GuardedInVault<DropContents>.self,
            GuardedInVault<ReplaceKeeping>.self, GuardedInVault<ApplyBatch>.self, GuardedInVault<MeasurePuts>.self,
            StepInVault<StoreNewItem>.self, StepInVault<ArchiveContent>.self, StepInVault<WriteTombstone>.self,
            StepInVault<StoreRestored>.self, StepInVault<ReleaseContents>.self, StepInVault<KeepReplaced>.self,
            StepInVault<StoreReplacement>.self, StepInVault<MeasureVersions>.self, StepInVault<KeepVersions>.self,
            StepInVault<CountVersions>.self, StepInVault<DropVersions>.self, StepInVault<ArchiveContents>.self,
            StepInVault<WriteTombstones>.self, StepInVault<CountPuts>.self, StepInVault<WritePuts>.self,
            StepInVault<RemoveSomeItems>.self, StepInVault<RemoveSomeDeletedContents>.self,
            StepInVault<RemoveSomeReplacedContents>.self,
        ]
    }
}

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

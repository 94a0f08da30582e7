internal import Cryptography
internal import HTTPCore
internal import Postgres

/// The account's row with its plan.
struct ExportAccountRow: AccountRead {
    struct Row: ExportedRecord {
        let accountID: AccountID
        let userid: String
        let createdAt: Timestamp
        let plan: AccountPlan
        let revision: Int64
        let purgedRevision: Int64
        let items: Int64
        let bytes: Int64

        let type = "account"

        func write(to writer: inout JSONWriter) {
            writer.member("accountId", accountID.description)
            writer.member("userid", userid)
            writer.member("createdAt", createdAt)
            plan.write(to: &writer)
            writer.object("usage") { writer in
                writer.member("items", items)
                writer.member("bytes", bytes)
            }
            writer.member("revision", revision)
            writer.member("purgedRevision", purgedRevision)
        }
    }

    static let sql: AccountSQL<Self> = """
        SELECT a.account_id, a.userid, a.created_at, a.revision, a.purged_revision, a.item_count, a.item_bytes,
            p.plan, \(AccountPlan.Limits.columns)
        FROM saltern.accounts a JOIN saltern.plans p ON p.plan = a.plan
        WHERE a.account_id = \(.account)
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row {
        let accountID: AccountID = try row.next()
        let userid: String = try row.next()
        let createdAt: Timestamp = try row.next()
        let revision: Int64 = try row.next()
        let purgedRevision: Int64 = try row.next()
        let items: Int64 = try row.next()
        let bytes: Int64 = try row.next()
        return Row(
            accountID: accountID, userid: userid, createdAt: createdAt, plan: try AccountPlan(row: &row),
            revision: revision, purgedRevision: purgedRevision, items: items, bytes: bytes)
    }
}

/// The keyring, if there is one.
struct ExportKeyring: AccountRead {
    struct Row: ExportedRecord {
        let keyring: [UInt8]
        let revision: Int64

        let type = "keyring"

        func write(to writer: inout JSONWriter) {
            writer.member("keyring", base64: keyring)
            writer.member("revision", revision)
        }
    }

    static let sql: AccountSQL<Self> = """
        SELECT a.keyring, a.keyring_revision FROM saltern.accounts a
        WHERE a.account_id = \(.account) AND a.keyring IS NOT NULL
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

/// The recovery keyring, if a recovery is set up.
struct ExportRecovery: AccountRead {
    struct Row: ExportedRecord {
        let keyring: [UInt8]?
        let createdAt: Timestamp
        let lastUsedAt: Timestamp?

        let type = "recovery"

        func write(to writer: inout JSONWriter) {
            if let keyring { writer.member("keyring", base64: keyring) }
            writer.member("createdAt", createdAt)
            if let lastUsedAt { writer.member("lastUsedAt", lastUsedAt) }
        }
    }

    static let sql: AccountSQL<Self> =
        "SELECT r.keyring, r.created_at, r.last_used_at FROM saltern.recoveries r WHERE r.account_id = \(.account)"

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

/// The account's kept keyrings, including expired ones that are still stored. Few rows, so without pages.
struct ExportKeptKeyrings: AccountRead {
    struct Row: ExportedRecord {
        let kept: KeptKeyring

        let type = "keptKeyring"

        func write(to writer: inout JSONWriter) { kept.write(to: &writer) }
    }

    static let sql: AccountSQL<Self> = """
        SELECT k.kept_id, k.keyring, k.keyring_revision, k.recovery_keyring, k.proven, k.replaced_at, k.expires_at
        FROM saltern.kept_keyrings k WHERE k.account_id = \(.account) ORDER BY k.replaced_at, k.keyring_revision, k.kept_id
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row {
        Row(kept: try row.read(KeptKeyring.init))
    }
}

/// The second factor, if one is set up, without its secret.
struct ExportSecondFactor: AccountRead {
    struct Row: ExportedRecord {
        let createdAt: Timestamp
        let confirmedAt: Timestamp?
        let recoveryCodesLeft: Int64

        let type = "secondFactor"

        func write(to writer: inout JSONWriter) {
            writer.member("createdAt", createdAt)
            if let confirmedAt { writer.member("confirmedAt", confirmedAt) }
            writer.member("recoveryCodesLeft", recoveryCodesLeft)
        }
    }

    static let sql: AccountSQL<Self> = """
        SELECT f.created_at, f.confirmed_at,
            (SELECT count(*) FROM saltern.second_factor_codes c WHERE c.account_id = \(.account))
        FROM saltern.second_factors f WHERE f.account_id = \(.account)
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

/// The receipt, if there is one.
struct ExportReceipt: AccountRead {
    struct Row: ExportedRecord {
        let receipt: String
        let updatedAt: Timestamp

        let type = "receipt"

        func write(to writer: inout JSONWriter) {
            writer.member("receipt", receipt)
            writer.member("updatedAt", updatedAt)
        }
    }

    static let sql: AccountSQL<Self> =
        "SELECT r.receipt, r.updated_at FROM saltern.receipts r WHERE r.account_id = \(.account)"

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

/// The invite that the account registered with. It scans all invites, which are few.
struct ExportInvites: AccountRead {
    struct Row: ExportedRecord {
        let createdAt: Timestamp
        let usedAt: Timestamp?
        let plan: String?
        let note: String?

        let type = "invite"

        func write(to writer: inout JSONWriter) {
            writer.member("createdAt", createdAt)
            if let usedAt { writer.member("usedAt", usedAt) }
            if let plan { writer.member("plan", plan) }
            if let note { writer.member("note", note) }
        }
    }

    static let sql: AccountSQL<Self> = """
        SELECT i.created_at, i.used_at, i.plan, i.note
        FROM saltern.accounts a JOIN saltern.invites i ON i.invite_id = a.invite_id
        WHERE a.account_id = \(.account)
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

/// The shared vaults of the account. ``VaultExport`` exports the vaults that it owns.
struct ExportMemberships: AccountRead {
    struct Row: ExportedRecord {
        let vaultID: VaultID
        let memberID: MemberID
        let isOwner: Bool
        let joinedAt: Timestamp

        let type = "membership"

        func write(to writer: inout JSONWriter) {
            writer.member("vault", vaultID)
            writer.member("memberId", memberID)
            writer.member("owner", isOwner)
            writer.member("joinedAt", joinedAt)
        }
    }

    static let sql: AccountSQL<Self> = """
        SELECT m.vault_id, m.member_id, m.owns, m.joined_at FROM saltern.memberships m
        WHERE m.account_id = \(.account) ORDER BY m.vault_id
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

/// Reads the account's passkeys with their public keys. They are few.
struct ExportPasskeys: AccountRead {
    struct Row: ExportedRecord {
        let passkey: StoredPasskey
        let publicKey: [UInt8]
        let signCount: Int64

        let type = "passkey"

        func write(to writer: inout JSONWriter) {
            passkey.writeMembers(to: &writer)
            writer.member("publicKey", base64: publicKey)
            writer.member("signCount", signCount)
        }
    }

    static let sql: AccountSQL<Self> = """
        SELECT \(StoredPasskey.columns), k.public_key, k.sign_count FROM saltern.passkeys k
        WHERE k.account_id = \(.account) ORDER BY k.created_at, k.credential_id
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row {
        Row(passkey: try row.read(StoredPasskey.init), publicKey: try row.next(), signCount: try row.next())
    }
}

/// The statements of exports.
extension StatementList {
    static var export: [any Statement.Type] {
        [
            Owned<ExportAccountRow>.self, Owned<ExportKeyring>.self, Owned<ExportRecovery>.self,
            Owned<ExportKeptKeyrings>.self, Owned<ExportSecondFactor>.self, Owned<ExportReceipt>.self,
            Owned<ExportInvites>.self, Owned<ExportMemberships>.self, Owned<ExportVault>.self,
            OwnedByVault<ExportItems>.self, OwnedByVault<ExportDeletedContents>.self,
            OwnedByVault<ExportVersions>.self, Owned<ExportSessions>.self, Owned<ExportSecurityEvents>.self,
            Owned<ExportItems>.self, Owned<ExportDeletedContents>.self, Owned<ExportVersions>.self,
            Owned<ExportRotations>.self, Owned<ExportStagedItems>.self, Owned<ExportShareIDs>.self,
            Owned<ExportShare>.self,
        ]
    }
}

import Postgres
import SalternTesting
import Testing

@testable import SalternServer

/// Every row of every table that names an account, as the catalogue of the database knows them.
struct AccountRows: Statement {
    let accountID: AccountID

    /// Columns that can name an account, in whatever table.
    static let columns = ["account_id", "owner_account", "target_account"]

    /// Counts for one account, by `table.column`.
    static let function = """
        CREATE FUNCTION public.account_rows(account uuid) RETURNS TABLE (name text, rows bigint)
        LANGUAGE plpgsql SECURITY DEFINER AS $$
        DECLARE found record;
        BEGIN
            FOR found IN
                SELECT c.relname, a.attname FROM pg_catalog.pg_class c
                JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid
                WHERE c.relnamespace = 'saltern'::regnamespace AND c.relkind IN ('r', 'p') AND NOT a.attisdropped
                    AND a.attname IN (\(columns.map { "'\($0)'" }.joined(separator: ", ")))
            LOOP
                name := found.relname || '.' || found.attname;
                EXECUTE format('SELECT count(*) FROM saltern.%I WHERE %I = $1', found.relname, found.attname)
                    INTO rows USING account;
                RETURN NEXT;
            END LOOP;
        END $$
        """

    static let isReadOnly = true
    static let sql: SQL<Self> = "SELECT name, rows FROM public.account_rows(\(\.accountID))"

    static func decode(_ row: inout RowReader) throws(PostgresError) -> (name: String, rows: Int64) {
        (name: try row.next(), rows: try row.next())
    }
}

extension TestApplication {
    /// Makes ``accountRows(_:)`` possible.
    func prepareAccountRows() async throws { try await administer(AccountRows.function) }

    /// How many rows name the account, by `table.column`.
    func accountRows(_ account: TestAccount) async throws -> [String: Int64] {
        let rows = try await execute(AccountRows(accountID: #require(AccountID(pathParameter: account.id))))
        return Dictionary(rows.map { ($0.name, $0.rows) }) { $1 }
    }

    /// Gives the account at least one row in every table that can name it, beside what it has already.
    func fillEveryTable(_ account: TestAccount) async throws {
        let replaced = try await account.createItem()
        _ = try await account.client.put(replaced, ItemTests.item(), ["If-Match": "*"])
        let deleted = try await account.createItem()
        _ = try await account.client.delete(deleted, ["If-Match": "*"])
        let id = "'\(account.id)'"
        let rotation = "'\(Fixtures.uuid())'"
        let share = "sha256('\(account.id)')"
        for sql in [
            "INSERT INTO saltern.recoveries VALUES (\(id), sha256('r'), sha256('k'), now())",
            """
            INSERT INTO saltern.kept_keyrings
                (account_id, kept_id, keyring, keyring_revision, recovery_keyring, proven, replaced_at, expires_at)
            SELECT \(id), gen_random_uuid(), sha256('kept'), n, sha256('opened'), n = 2, now(), now() + interval '30 days'
            FROM generate_series(1, 2) n
            """,
            "INSERT INTO saltern.second_factors VALUES (\(id), sha256('s'), now(), now())",
            "INSERT INTO saltern.second_factor_codes SELECT \(id), sha256(n::text::bytea) FROM generate_series(1, 10) n",
            "INSERT INTO saltern.rotations VALUES (\(id), \(rotation), now(), now())",
            """
            INSERT INTO saltern.rotation_items (account_id, rotation_id, item_id, base_revision, format, body)
            SELECT \(id), \(rotation), gen_random_uuid(), 1, 'opaque', sha256('b') FROM generate_series(1, 3)
            """,
            "INSERT INTO saltern.receipts VALUES (\(id), 'receipt', now())",
            """
            INSERT INTO saltern.security_events (account_id, occurred_at, event_id, kind)
            SELECT \(id), now(), gen_random_uuid(), 'exported' FROM generate_series(1, 3)
            """,
            """
            INSERT INTO saltern.shares
                (share_id, owner_account, manage_hash, format, salt, iterations, sealed, created_at, updated_at)
            VALUES (substr(\(share), 1, 16), \(id), \(share), 'opaque', \(share), 1000, \(share), now(), now())
            """,
            "INSERT INTO saltern.account_shares VALUES (\(id), substr(\(share), 1, 16), now())",
            """
            INSERT INTO saltern.invites (code_hash, invite_id, created_at, expires_at, used_at)
            VALUES (sha256('\(account.id) invite'), \(id), now(), now(), now())
            """,
            """
            INSERT INTO saltern.passkeys
                (account_id, credential_id, name, public_key, algorithm, sign_count, backup_eligible, backed_up, logs_in,
                created_at)
            VALUES (\(id), sha256('credential'), 'Key', sha256('public'), -7, 0, false, false, false, now())
            """,
            "INSERT INTO saltern.used_challenges VALUES (\(id), sha256('challenge'), now() + interval '5 minutes')",
            "UPDATE saltern.accounts SET invite_id = \(id) WHERE account_id = \(id)",
        ] {
            try await administer(sql)
        }
    }
}

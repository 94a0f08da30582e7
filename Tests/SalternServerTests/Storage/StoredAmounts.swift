import Postgres
import SalternTesting
import Testing

@testable import SalternServer

/// What a table holds of one account.
struct StoredAmount: Sendable, Equatable {
    let rows: Int64
    /// The bytes of all values whose length somebody chooses.
    let bytes: Int64
}

/// What every table that can name an account holds of it, as the catalogue of the database knows them.
struct FindStoredAmounts: Statement {
    let accountID: AccountID

    static let function = """
        CREATE FUNCTION public.stored_amounts(account uuid) RETURNS TABLE (name text, amount bigint, bytes bigint)
        LANGUAGE plpgsql SECURITY DEFINER AS $$
        DECLARE found record;
        BEGIN
            FOR found IN
                SELECT c.relname, a.attname, (
                    SELECT string_agg(format('coalesce(octet_length(t.%I), 0)', v.attname), ' + ')
                    FROM pg_catalog.pg_attribute v
                    WHERE v.attrelid = c.oid AND v.attnum > 0 AND NOT v.attisdropped
                        AND v.atttypid IN ('bytea'::regtype, 'text'::regtype)
                ) AS lengths
                FROM pg_catalog.pg_class c JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid
                WHERE c.relnamespace = 'saltern'::regnamespace AND c.relkind IN ('r', 'p') AND NOT a.attisdropped
                    AND a.attname IN ('account_id', 'owner_account')
            LOOP
                name := found.relname;
                EXECUTE format('SELECT count(*), coalesce(sum(%s), 0)::bigint FROM saltern.%I t WHERE t.%I = $1',
                    coalesce(found.lengths, '0'), found.relname, found.attname)
                    INTO amount, bytes USING account;
                RETURN NEXT;
            END LOOP;
        END $$
        """

    static let isReadOnly = true
    static let sql: SQL<Self> = "SELECT name, amount, bytes FROM public.stored_amounts(\(\.accountID))"

    static func decode(_ row: inout RowReader) throws(PostgresError) -> (name: String, amount: StoredAmount) {
        (name: try row.next(), amount: StoredAmount(rows: try row.next(), bytes: try row.next()))
    }
}

/// The counters of an account beside what they count.
struct CompareCounters: Statement {
    let accountID: AccountID

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT
            ARRAY[a.item_count, a.item_bytes, a.tombstone_count, a.kept_count, a.kept_bytes,
                a.version_count, a.version_bytes],
            ARRAY[
                i.live, i.bytes, i.tombstones, k.number, k.bytes, v.number, v.bytes
            ]::bigint[]
        FROM saltern.accounts a
        CROSS JOIN LATERAL (
            SELECT count(*) FILTER (WHERE NOT i.deleted) AS live, count(*) FILTER (WHERE i.deleted) AS tombstones,
                coalesce(sum(coalesce(octet_length(i.body), 0) + coalesce(octet_length(i.title), 0)), 0) AS bytes
            FROM saltern.items i WHERE i.account_id = \(\.accountID)
        ) i
        CROSS JOIN LATERAL (
            SELECT count(*) AS number,
                coalesce(sum(octet_length(k.body) + coalesce(octet_length(k.title), 0)), 0) AS bytes
            FROM saltern.deleted_contents k WHERE k.account_id = \(\.accountID)
        ) k
        CROSS JOIN LATERAL (
            SELECT count(*) AS number,
                coalesce(sum(octet_length(v.body) + coalesce(octet_length(v.title), 0)), 0) AS bytes
            FROM saltern.replaced_contents v WHERE v.account_id = \(\.accountID)
        ) v
        WHERE a.account_id = \(\.accountID)
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> (counted: [Int64], actual: [Int64]) {
        (counted: try row.next(), actual: try row.next())
    }
}

/// The counters of failures, which name nobody.
struct CountFailureCounters: Statement {
    typealias Row = Int64
    static let isReadOnly = true
    static let sql: SQL<Self> = "SELECT count(*) FROM saltern.failed_attempts"
}

/// What an account may store by its plan: docs/admin/configure.md, "Storage bound of an account".
struct StorageBound {
    let items: Int64
    let itemBytes: Int64
    let bytes: Int64
    let sessions: Int64
    let shares: Int64

    /// A table's bound, by its name; nil for a table that is not in the handbook.
    func bound(of table: String) -> StoredAmount? {
        switch table {
        case "accounts": StoredAmount(rows: 1, bytes: 65_536 + 512)
        case "logins": StoredAmount(rows: 1, bytes: 512)
        case "items": amount(2 * items + 1_000, each: 64, and: bytes)
        case "deleted_contents", "replaced_contents": amount(items, each: 64, and: bytes)
        case "rotations": StoredAmount(rows: 1, bytes: 0)
        case "rotation_items": amount(items, each: 32, and: bytes)
        case "sessions": amount(sessions + 9, each: 320)
        case "security_events": amount(Int64(SecurityEvent.Kind.allCases.count) * 400, each: 320)
        case "account_shares": amount(shares, each: 16)
        case "shares": amount(shares, each: itemBytes + 128)
        case "receipts": StoredAmount(rows: 1, bytes: 65_536)
        case "recoveries": StoredAmount(rows: 1, bytes: 65_536 + 128)
        case "kept_keyrings": amount(5, each: 2 * 65_536 + 16)
        case "second_factors": StoredAmount(rows: 1, bytes: 255)
        case "second_factor_codes": amount(10, each: 32)
        case "passkeys": amount(20, each: 3_600)
        case "memberships": amount(100, each: 40)
        case "vaults": amount(10, each: 512)
        case "used_challenges": amount(TooManyPasskeyUses.limit, each: 32)
        // Rows only where the operator has destinations.
        case "event_queues", "outgoing_events": StoredAmount(rows: 0, bytes: 0)
        default: nil
        }
    }

    private func amount(_ rows: Int64, each: Int64, and bytes: Int64 = 0) -> StoredAmount {
        StoredAmount(rows: rows, bytes: rows * each + bytes)
    }
}

extension TestApplication {
    /// Gives everybody a plan.
    func setPlan(_ plan: StorageBound) async throws {
        try await administer(
            """
            UPDATE saltern.plans SET max_items = \(plan.items), max_item_bytes = \(plan.itemBytes),
                max_bytes = \(plan.bytes), max_sessions = \(plan.sessions), max_shares = \(plan.shares)
            """)
    }

    /// Holds what is stored of an account against its plan, and its counters against what they count.
    func expectBounds(_ plan: StorageBound, of account: String, _ why: String) async throws {
        let id = try #require(AccountID(pathParameter: account))
        for (name, amount) in try await execute(FindStoredAmounts(accountID: id)) {
            let bound = try #require(plan.bound(of: name), "\(name) is bounded by nothing")
            #expect(amount.rows <= bound.rows, "\(name) after \(why)")
            #expect(amount.bytes <= bound.bytes, "\(name) after \(why)")
        }
        let counters = try #require(try await execute(CompareCounters(accountID: id)).first)
        let (kept, keptBytes) = (counters.actual[3] + counters.actual[5], counters.actual[4] + counters.actual[6])
        #expect(kept <= plan.items, "kept contents and versions after \(why)")
        #expect(keptBytes <= plan.bytes, "bytes of kept contents and versions after \(why)")
        #expect(counters.counted == counters.actual, "items, bytes, tombstones, kept, bytes, after \(why)")
    }
}

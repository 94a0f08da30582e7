import Cryptography
import Postgres
import SalternTesting
import Testing

@testable import SalternServer

/// A database in which one account has 20,000 items, and everything else in plenty, and each of 10,000 others has one of
/// everything. ``SkewedVaults`` adds their vaults, passkeys and outgoing events.
struct SkewedDatabase {
    let app: TestApplication

    /// An account as the statements name it.
    struct Owner: Sendable {
        let name: String
        let account: AccountID
        let userid: Userid

        init(_ name: String, _ uuid: String) throws {
            self.name = name
            account = try #require(AccountID(pathParameter: uuid))
            userid = try Userid("user-\(uuid)")
        }

        func item(_ number: Int) throws -> ItemID { ItemID(try uuid("item \(account) \(number)")) }

        /// One of the account's sessions.
        var tokenHash: TokenHash { session(1) }

        /// One of the account's sessions, by its number.
        func session(_ number: Int) -> TokenHash { TokenHash(SHA256.hash(Array("token \(account) \(number)".utf8))) }

        /// One of the account's shares. Number 0 is noted as the account's and not written yet.
        func share(_ number: Int = 1) throws -> ShareID {
            try #require(Self.digest("share \(account) \(number)").withUnsafeBytes { ShareID(bytes: $0) })
        }

        func rotation() throws -> RotationID {
            RotationID(try uuid("rotation \(account)"))
        }

        /// The id that the database makes of a name.
        func uuid(_ name: String) throws -> UUID { try #require(UUID(bytes: Self.digest(name))) }

        private static func digest(_ text: String) -> [UInt8] {
            SHA256.hash(Array(text.utf8)).withUnsafeBytes { Array($0.prefix(16)) }
        }
    }

    static let count = 20_000
    private static let large = "00000000-0000-0000-0000-0000000000aa"

    let large: Owner
    let small: Owner

    init(_ app: TestApplication) throws {
        self.app = app
        large = try Owner("the account with 20,000 items", Self.large)
        small = try Owner("an account with one item", "00000000-0000-0000-0001-000000005000")
    }

    /// The accounts with one of everything. The planner shall hear nothing that the test does not tell it.
    /// - Parameter count: How many.
    func fillSmall(_ count: Int = 10_000) async throws {
        for table in Self.tables {
            try await app.administer("ALTER TABLE saltern.\(table) SET (autovacuum_enabled = false)")
        }
        try await app.administer("CREATE TABLE public.owners (account_id uuid, things int)")
        try await app.administer(
            """
            CREATE FUNCTION public.name_of(what text) RETURNS uuid LANGUAGE sql IMMUTABLE
            AS $$ SELECT left(encode(sha256(what::bytea), 'hex'), 32)::uuid $$
            """)
        try await app.administer(SkewedVaults.destinations)
        try await app.administer(
            """
            INSERT INTO public.owners
            SELECT ('00000000-0000-0000-0001-' || lpad(n::text, 12, '0'))::uuid, 1 FROM generate_series(1, \(count)) n
            """)
        try await fill()
    }

    /// The account that has everything in plenty.
    func fillLarge() async throws {
        try await app.administer("TRUNCATE public.owners; INSERT INTO public.owners VALUES ('\(Self.large)', 100)")
        try await fill()
    }

    /// The planner knows what is there.
    func analyze() async throws {
        for table in Self.tables { try await app.administer("ANALYZE saltern.\(table)") }
    }

    /// The planner knows nothing, as on a database that was just filled.
    func forgetStatistics() async throws {
        try await app.administer(
            """
            DELETE FROM pg_statistic WHERE starelid IN (
                SELECT c.oid FROM pg_class c WHERE c.relnamespace = 'saltern'::regnamespace);
            UPDATE pg_class SET reltuples = -1, relpages = 0
            WHERE relnamespace = 'saltern'::regnamespace AND relkind = 'r'
            """)
    }

    static let tables =
        [
            "accounts", "logins", "sessions", "items", "deleted_contents", "replaced_contents", "security_events",
            "shares", "account_shares", "failed_attempts", "rotations", "rotation_items", "kept_keyrings",
        ] + SkewedVaults.tables

    /// `things` of everything for each of `public.owners`, and 200 times as many items; every tenth item of a large
    /// account is a tombstone.
    private func fill() async throws {
        for sql in [
            """
            INSERT INTO saltern.accounts
                (account_id, userid, revision, item_count, item_bytes, tombstone_count, kept_count, kept_bytes,
                version_count, version_bytes, created_at)
            SELECT account_id, 'user-' || account_id, n.items, n.items - n.kept, n.items - n.kept, n.kept, n.kept, n.kept,
                n.kept, n.kept, '2026-01-01'
            FROM public.owners CROSS JOIN LATERAL (
                SELECT CASE things WHEN 1 THEN 1 ELSE 20000 END AS items, CASE things WHEN 1 THEN 0 ELSE 2000 END AS kept
            ) n
            """,
            """
            INSERT INTO saltern.logins (userid, account_id, verifier, kdf_iterations)
            SELECT 'user-' || account_id, account_id, sha256('v'), 600000 FROM public.owners
            """,
            """
            INSERT INTO saltern.sessions
                (account_id, token_hash, session_id, created_at, last_used_at, expires_at)
            SELECT account_id, sha256(('token ' || account_id || ' ' || n)::bytea), gen_random_uuid(), '2026-01-01',
                '2026-01-01'::timestamptz + n * interval '1 minute', '2126-01-01'
            FROM public.owners, generate_series(1, things) n
            """,
            """
            INSERT INTO saltern.items
                (account_id, item_id, revision, deleted, collection, format, body, created_at, updated_at)
            SELECT account_id, public.name_of('item ' || account_id || ' ' || n), n,
                n % 10 = 0, 'default', CASE WHEN n % 10 > 0 THEN 'opaque' END,
                CASE WHEN n % 10 > 0 THEN '\\x00'::bytea END, '2026-01-01', '2026-01-01'
            FROM public.owners, generate_series(1, CASE things WHEN 1 THEN 1 ELSE 20000 END) n
            """,
            """
            INSERT INTO saltern.deleted_contents
                (account_id, item_id, collection, format, body, created_at, expires_at)
            SELECT account_id, public.name_of('item ' || account_id || ' ' || n), 'default',
                'opaque', '\\x00', '2026-01-01', '2126-01-01'::timestamptz + n * interval '1 second'
            FROM public.owners, generate_series(10, CASE things WHEN 1 THEN 10 ELSE 20000 END, 10) n
            """,
            """
            INSERT INTO saltern.replaced_contents (account_id, item_id, revision, collection, format, body, created_at,
                updated_at, replaced_at, expires_at)
            SELECT account_id, public.name_of('item ' || account_id || ' ' || CASE WHEN n > 10000 THEN 1 ELSE n - 9 END), n,
                'default', 'opaque', '\\x00', '2026-01-01', '2026-01-01', '2026-01-01',
                '2126-01-01'::timestamptz + n * interval '1 second'
            FROM public.owners, generate_series(10, CASE things WHEN 1 THEN 10 ELSE 20000 END, 10) n
            """,
            """
            INSERT INTO saltern.security_events (account_id, occurred_at, event_id, kind)
            SELECT account_id, '2026-01-01'::timestamptz + n * interval '1 second', gen_random_uuid(),
                CASE WHEN n % 2 = 0 THEN 'exported' ELSE 'session_ended' END
            FROM public.owners, generate_series(1, things * 2) n
            """,
            """
            INSERT INTO saltern.shares
                (share_id, owner_account, manage_hash, format, salt, iterations, sealed, created_at, updated_at)
            SELECT uuid_send(public.name_of('share ' || account_id || ' ' || n)), account_id,
                sha256(('manage ' || account_id || ' ' || n)::bytea), 'opaque', sha256('s'), 1000, '\\x00', '2026-01-01',
                '2026-01-01'
            FROM public.owners, generate_series(1, things) n
            """,
            """
            INSERT INTO saltern.account_shares (account_id, share_id, created_at)
            SELECT account_id, uuid_send(public.name_of('share ' || account_id || ' ' || n)), '2026-01-01'
            FROM public.owners, generate_series(0, things) n
            """,
            """
            INSERT INTO saltern.failed_attempts
                (subject, counter, counts, since, latest, streak, first_failed_at, last_failed_at, blocked_until)
            SELECT sha256(('subject ' || account_id)::bytea), sha256(n::text::bytea), '{1,0,0,0,0}',
                array_fill('2026-01-01'::timestamptz, '{5}'), array_fill('2026-01-01'::timestamptz, '{5}'), 1,
                '2026-01-01', '2026-01-01', '2026-01-01'
            FROM public.owners, generate_series(1, CASE things WHEN 1 THEN 1 ELSE 18 END) n
            """,
            """
            INSERT INTO saltern.kept_keyrings
                (account_id, kept_id, keyring, keyring_revision, proven, replaced_at, expires_at)
            SELECT account_id, gen_random_uuid(), '\\x00', n, false, '2026-01-01', '2126-01-01'
            FROM public.owners, generate_series(1, 4) n
            """,
            """
            INSERT INTO saltern.rotations (account_id, rotation_id, opened_at, expires_at)
            SELECT account_id, public.name_of('rotation ' || account_id), '2026-01-01',
                '2126-01-01' FROM public.owners
            """,
            """
            INSERT INTO saltern.rotation_items (account_id, rotation_id, item_id, base_revision, format, body)
            SELECT account_id, public.name_of('rotation ' || account_id),
                public.name_of('item ' || account_id || ' ' || n), n, 'opaque', '\\x00'
            FROM public.owners, generate_series(1, CASE things WHEN 1 THEN 1 ELSE 10000 END) n
            """,
        ] {
            try await app.administer(sql)
        }
        for sql in SkewedVaults.fill { try await app.administer(sql) }
    }
}

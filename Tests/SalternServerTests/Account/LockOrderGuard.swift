import Postgres
import SalternTesting

@testable import SalternServer

/// Triggers that watch every row that is written: whether the tables of ``LockOrder`` were locked in their order, and
/// whether the account's row was locked before what belongs to the account.
enum LockOrderGuard {
    /// The tables that have a place of their own.
    private static let ranks = LockOrder.allCases.filter { $0 != .contents }.flatMap { place in
        place.tables.map { ($0, place.rawValue) }
    }

    static let script: [String] =
        [
            "CREATE TABLE public.lock_order (finding text NOT NULL)",
            "GRANT ALL ON public.lock_order TO PUBLIC",
            rankFunction, orderFunction, accountFunction,
        ]
        + ranks.map { table, _ in
            """
            CREATE TRIGGER lock_order BEFORE INSERT OR UPDATE OR DELETE ON saltern.\(table)
            FOR EACH ROW EXECUTE FUNCTION public.watch_lock_order()
            """
        }
        + LockOrder.allCases.filter(\.isWithinAccount).flatMap(\.tables).map { table in
            """
            CREATE TRIGGER account_lock BEFORE INSERT OR UPDATE OR DELETE ON saltern.\(table)
            FOR EACH ROW EXECUTE FUNCTION public.watch_account_lock()
            """
        }

    private static let rankFunction = """
        CREATE FUNCTION public.lock_rank(name text) RETURNS integer LANGUAGE sql IMMUTABLE AS $$
            SELECT CASE name \(ranks.map { "WHEN '\($0)' THEN \($1)" }.joined(separator: " ")) END
        $$
        """

    /// Each time a row is written, the tables that the transaction has locked rows of since the last time must not come
    /// before those of earlier.
    private static let orderFunction = """
        CREATE FUNCTION public.watch_lock_order() RETURNS trigger LANGUAGE plpgsql AS $$
        DECLARE
            before text[] := coalesce(nullif(current_setting('lock_order.held', true), ''), '{}')::text[];
            held text[];
        BEGIN
            SELECT array_agg(c.relname::text) INTO held
            FROM pg_locks l JOIN pg_class c ON c.oid = l.relation
            WHERE l.pid = pg_backend_pid() AND l.mode IN ('RowShareLock', 'RowExclusiveLock')
                AND c.relnamespace = 'saltern'::regnamespace AND public.lock_rank(c.relname) IS NOT NULL;
            -- New rows with keys that nobody knows wait for nobody.
            IF TG_OP <> 'INSERT' OR TG_TABLE_NAME NOT IN ('accounts', 'shares', 'account_shares') THEN
                INSERT INTO public.lock_order
                SELECT format('%s after %s', n, b) FROM unnest(held) n, unnest(before) b
                WHERE n <> ALL(before) AND public.lock_rank(n) < public.lock_rank(b);
            END IF;
            PERFORM set_config('lock_order.held', held::text, true);
            RETURN coalesce(NEW, OLD);
        END $$
        """

    /// The row of the account is locked by this transaction, or new in it. The last use of a session, and shares without
    /// an account, have no such lock; and tests write what they like.
    private static let accountFunction = """
        CREATE FUNCTION public.watch_account_lock() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
        DECLARE
            written jsonb := to_jsonb(coalesce(NEW, OLD));
            me bigint := pg_current_xact_id()::text::bigint & 4294967295;
        BEGIN
            IF TG_TABLE_NAME = 'sessions' AND TG_OP = 'UPDATE'
                AND to_jsonb(NEW) - 'last_used_at' = to_jsonb(OLD) - 'last_used_at'
                OR (SELECT r.rolsuper FROM pg_roles r WHERE r.rolname = session_user)
                OR written->>'account_id' = '00000000-0000-0000-0000-000000000000'
            THEN
                RETURN coalesce(NEW, OLD);
            END IF;
            IF NOT EXISTS (
                SELECT FROM saltern.accounts a WHERE a.account_id = (written->>'account_id')::uuid
                    AND (a.xmax::text::bigint = me OR a.xmin::text::bigint = me))
            THEN
                INSERT INTO public.lock_order VALUES (format('%s of %s without the account', TG_OP, TG_TABLE_NAME));
            END IF;
            RETURN coalesce(NEW, OLD);
        END $$
        """
}

/// What ``LockOrderGuard`` has found.
struct FindLockOrderFindings: Statement {
    typealias Row = String
    static let isReadOnly = true
    static let sql: SQL<Self> = "SELECT DISTINCT finding FROM public.lock_order ORDER BY 1"
}

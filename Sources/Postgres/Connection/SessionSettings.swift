/// The settings that change how PostgreSQL reads and writes text, or the meaning of statements.
///
/// Their defaults depend on role, database, server and libpq's environment, so this program's sessions set all of them.
/// Names that the server does not have are left out.
enum SessionSettings {
    /// Returns a query with one row that sets all of them: for the transaction if `isLocal`, otherwise for the session.
    static func query(isLocal: Bool) -> SQLFragment {
        let scope: SQLFragment = isLocal ? "true" : "false"
        return """
            SELECT count(pg_catalog.set_config(needed.name, needed.value, \(scope)))
            FROM (VALUES ('array_nulls', 'on'), ('bytea_output', 'hex'), ('check_function_bodies', 'on'),
                ('DateStyle', 'ISO, MDY'), ('default_transaction_deferrable', 'off'), ('extra_float_digits', '1'),
                ('IntervalStyle', 'postgres'), ('quote_all_identifiers', 'off'), ('row_security', 'on'),
                ('standard_conforming_strings', 'on'), ('TimeZone', 'UTC'), ('transaction_timeout', '0'),
                ('transform_null_equals', 'off'), ('xmloption', 'content')) AS needed (name, value)
            WHERE pg_catalog.current_setting(needed.name, true) IS NOT NULL
            """
    }
}

extension PostgresConfiguration {
    /// SQL that gives sessions of PostgreSQL's own programs the settings of this program's sessions. It prints nothing.
    ///
    /// A commit of such a session is on disk when it returns.
    public static var sessionScript: String {
        """
        DO $$ BEGIN
            PERFORM (\(SessionSettings.query(isLocal: false).text));
            IF pg_catalog.current_setting('synchronous_commit') = 'off' THEN
                PERFORM pg_catalog.set_config('synchronous_commit', 'on', false);
            END IF;
        END $$;
        """
    }
}

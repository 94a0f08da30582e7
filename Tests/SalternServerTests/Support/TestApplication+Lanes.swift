import Postgres
import SalternTesting

extension TestApplication {
    /// Notes from now on on which connections a table's rows are changed.
    func watchLanes(of table: String) async throws {
        try await administer(
            """
            CREATE TABLE saltern.lanes (lock_timeout text);
            GRANT SELECT ON saltern.lanes TO PUBLIC;
            CREATE FUNCTION saltern.note_lane() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS
                'BEGIN INSERT INTO saltern.lanes SELECT current_setting(''lock_timeout''); RETURN NULL; END';
            CREATE TRIGGER note_lane AFTER UPDATE OR DELETE ON saltern.\(table)
                FOR EACH STATEMENT EXECUTE FUNCTION saltern.note_lane();
            """)
    }

    /// For each statement that has changed the table whether it was sent on a shared connection: nothing waits there.
    func sharedLanes() async throws -> [Bool] { try await execute(FindLanes()).map { $0 == "5ms" } }
}

private struct FindLanes: Statement {
    typealias Row = String

    static let isReadOnly = true
    static let sql: SQL<Self> = "SELECT l.lock_timeout FROM saltern.lanes l ORDER BY l.ctid"
}

import HTTPCore
import Postgres
import SalternTesting
import Testing

@testable import SalternServer

/// What a statement of a request costs does not depend on other accounts, nor on how many items its own account has
/// beside the one it is about, whatever the planner knows or believes.
@Suite struct QueryPlanTests {
    /// What the planner knows.
    enum Statistics: String, CaseIterable {
        /// The statistics are of the time when every account had one item.
        case stale
        case fresh
        case absent
    }

    @Test func `hot statements touch the rows that they are about, whatever the statistics say`() async throws {
        try await TestApplication.with { app in
            try await app.administer(Explain.function)
            let database = try SkewedDatabase(app)
            try await database.fillSmall()
            try await database.analyze()
            try await database.fillLarge()
            for (shift, statistics) in Statistics.allCases.enumerated() {
                switch statistics {
                case .stale: break
                case .fresh: try await database.analyze()
                case .absent: try await database.forgetStatistics()
                }
                for (number, owner) in [database.large, database.small].enumerated() {
                    let cases = try await HotStatements(owner).probes.flatMap { [($0, true), ($0, false)] }
                    for (probe, isGeneric) in PropertyTests.cases(cases, shift: shift + number) {
                        let plan = try await app.execute(probe.explain(isGeneric: isGeneric)).first
                        let executed = try ExecutedPlan(json: try #require(plan))
                        let why: Comment = """
                            \(probe.name), \(isGeneric ? "generic" : "custom"), \(statistics) statistics, \
                            \(owner.name): \(executed)
                            """
                        #expect(executed.rows <= probe.rows, why)
                        // A join without an index of 4,000 rows with themselves is far above it.
                        #expect(executed.comparisons <= 20_000 + 10 * probe.rows, why)
                        #expect(executed.buffers <= 60 + 12 * probe.rows, why)
                        #expect(executed.sequentialScans.isEmpty, why)
                        // A bitmap scan would also read the shares that were deleted since the last vacuum.
                        let isCount = probe.name.contains("AdmitShare")
                        #expect(!isCount || !executed.scans.contains { $0.hasPrefix("Bitmap Heap") }, why)
                    }
                }
            }
        }
    }

    /// Returns the tables that hot statements read from one end to the other.
    private static func scannedTables(_ statements: HotStatements, _ app: TestApplication) async throws -> Set<String> {
        var tables: Set<String> = []
        for probe in try await statements.probes {
            for isGeneric in [true, false] {
                let plan = try await app.execute(probe.explain(isGeneric: isGeneric)).first
                tables.formUnion(try ExecutedPlan(json: try #require(plan)).sequentialScans)
            }
        }
        return tables
    }

    /// A connection keeps the plans of a time when the tables were small. They are right when the tables have grown.
    @Test func `hot statements use an index also where a table has one page`() async throws {
        try await TestApplication.with { app in
            try await app.administer(Explain.function)
            let database = try SkewedDatabase(app)
            try await database.fillSmall(1)
            try await database.analyze()
            let scanned = try await Self.scannedTables(HotStatements(database.large), app)
            #expect(scanned.isEmpty, "\(scanned)")
            // The planner would scan them if it were free to.
            try await app.administer("ALTER FUNCTION public.explained SET enable_seqscan = on")
            let free = try await Self.scannedTables(HotStatements(database.large), app)
            #expect(free.isSuperset(of: ["sessions", "items"]), "\(free)")
        }
    }
}

/// Executes a statement with its parameters, tells how, and undoes it.
struct Explain: Statement {
    typealias Row = String

    let types: String
    let arguments: String
    let text: String
    let isGeneric: Bool

    private var mode: String { isGeneric ? "force_generic_plan" : "force_custom_plan" }

    /// An exception undoes what the block has done, and leaves variables as they are.
    static let function = """
        CREATE FUNCTION public.explained(types text, arguments text, body text, mode text) RETURNS text
        LANGUAGE plpgsql AS $$
        DECLARE plan json;
        BEGIN
            EXECUTE 'PREPARE explained ' || types || ' AS ' || body;
            BEGIN
                PERFORM set_config('plan_cache_mode', mode, true);
                EXECUTE 'EXPLAIN (ANALYZE, BUFFERS, TIMING off, FORMAT json) EXECUTE explained ' || arguments INTO plan;
                RAISE EXCEPTION SQLSTATE 'UNDO1';
            EXCEPTION WHEN SQLSTATE 'UNDO1' THEN NULL;
            END;
            DEALLOCATE explained;
            RETURN plan::text;
        END $$
        """

    static let sql: SQL<Self> = "SELECT public.explained(\(\.types), \(\.arguments), \(\.text), \(\.mode))"

    init<S: Statement>(_ statement: S, isGeneric: Bool) {
        types = SQLLiteral.types(of: statement)
        arguments = SQLLiteral.arguments(of: statement)
        text = S.sql.text
        self.isGeneric = isGeneric
    }
}

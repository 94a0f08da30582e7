import Testing

@testable import Postgres

@Suite struct StatementCatalogTests {
    @Test func `a statement has the same name in every process, also a private one`() {
        #expect(StatementCatalog.name(of: Hidden.self) == "PostgresTests.Hidden")
        #expect(StatementCatalog.name(of: Generic<Hidden>.self) == "PostgresTests.Generic<PostgresTests.Hidden>")
    }
}

private struct Hidden: Statement {
    typealias Row = Void

    static let sql: SQL<Self> = "SELECT"
}

private struct Generic<Content>: Statement {
    typealias Row = Void

    static var sql: SQL<Self> { "SELECT" }
}

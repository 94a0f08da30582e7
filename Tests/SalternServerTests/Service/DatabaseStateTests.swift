import Postgres
import SalternTesting
import Testing

@testable import SalternServer

@Suite struct DatabaseStateTests {
    @Test(arguments: [
        ("", 0), (" ", 0), ("standby", 1), ("a, b, c", 1), ("*", 1), ("\"2 (a)\"", 1), ("FIRST 1 (standby)", 1),
        ("2 (a, b, c)", 2), ("first 3(a,b,c)", 3), ("ANY 2 (\"x\", *)", 2), ("a, \"b (3\", c", 1),
    ]) func `a commit waits for as many standbys as the setting says`(_ names: String, _ count: Int) {
        #expect(ReadDatabaseState.awaited(in: names) == count)
    }

    @Test func `a role without further rights is told of the schema and of those who follow, and of none of these`()
        async throws
    {
        try await TestApplication.with { app in
            let read = try await app.run { [postgres = app.postgres] in
                await DatabaseState.read(postgres, within: .seconds(60))
            }
            let state = try #require(read)
            #expect(state.schemaVersion == Schema.migrations.last?.version)
            #expect(!state.isInRecovery)
            #expect(state.followers == 0)
            #expect(state.awaitedStandbys == 0)
            let replication = try #require(state.replication)
            #expect(replication.standbys == nil)
            #expect(replication.bytesKeptForSlots == nil)
        }
    }
}

import SalternTesting
import Testing

@testable import Postgres

/// Statements that nobody waits for.
@Suite(.timeLimit(.minutes(60))) struct LaterTests {
    /// Notes how its own transaction commits.
    private struct NoteSetting: Statement {
        typealias Row = Void
        static let sql: SQL<Self> = """
            INSERT INTO public.notes VALUES (\(\.id), current_setting('synchronous_commit'))
            ON CONFLICT (id) DO UPDATE SET body = notes.body || '+' || excluded.body
            """
        let id: Int32
    }

    private struct Bodies: Statement {
        typealias Row = String
        static let sql: SQL<Self> = "SELECT body FROM public.notes ORDER BY id"
    }

    private struct Setting: Statement {
        typealias Row = String
        static let sql: SQL<Self> = "SELECT current_setting('synchronous_commit')"
    }

    private static func key(_ id: Int32) -> RequestKey { RequestKey(.session, UUID(high: 0, low: UInt64(id))) }

    @Test func `they are gathered, sent without waiting for the disk, and leave the others' commits alone`()
        async throws
    {
        let notes = Migration(version: 1, name: "notes", sql: AddNote.schema)
        let (bodies, settings) = try await TemporaryDatabase.with(migrations: [notes]) { database in
            let url = database.administratorURL
            let separator = url.contains("?") ? "&" : "?"
            return try await withClient(
                { $0.commitConnections = 2 }, url: url + separator + "options=-c%20synchronous_commit%3Dlocal"
            ) { client in
                _ = try await client.execute(Setting())
                for _ in 0..<3 {
                    for id in 1...150 as ClosedRange<Int32> {
                        client.executeInBackground(NoteSetting(id: id), about: Self.key(id))
                    }
                }
                try await eventually { try await client.execute(Bodies()).count == 150 }
                var settings: Set<String> = []
                for _ in 0..<8 { settings.formUnion(try await client.execute(Setting())) }
                return (try await client.execute(Bodies()), settings)
            }
        }
        #expect(bodies == Array(repeating: "off", count: 150), "each once: of those about one thing the last is sent")
        #expect(settings == ["local"])
    }

    @Test func `one that fails takes no other with it, and the log hears of it once`() async throws {
        let recorder = EventRecorder()
        let ids = try await withDatabase(AddNote.schema) {
            $0.observer = { recorder.record($0) }
        } _: { client in
            for id in 1...6 as ClosedRange<Int32> {
                client.executeInBackground(AddNote(id: id, body: id % 2 == 0 ? nil : "text"), about: Self.key(id))
            }
            try await eventually { try await client.execute(NoteIDs()).count == 3 && !recorder.events.isEmpty }
            return try await client.execute(NoteIDs())
        }
        #expect(ids == [1, 3, 5])
        #expect(recorder.events == [.laterStatementRefused(.notNullViolation)])
    }

    @Test func `what was gathered is sent before a shutdown`() async throws {
        let notes = Migration(version: 1, name: "notes", sql: AddNote.schema)
        let ids = try await TemporaryDatabase.with(migrations: [notes]) { database in
            try await withClient(url: database.administratorURL) { client in
                _ = try await client.execute(NoteIDs())
                client.executeInBackground(AddNote(id: 7), about: Self.key(7))
            }
            return try await withClient(url: database.administratorURL) { try await $0.execute(NoteIDs()) }
        }
        #expect(ids == [7])
    }
}

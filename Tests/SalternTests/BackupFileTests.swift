import Postgres
import Testing

@testable import saltern

@Suite struct BackupFileTests {
    @Test func `the history of a backup is read from what pg_restore makes of it`() {
        let script = """
            COPY saltern.schema_migrations (version, name, checksum, applied_at, oldest_program) FROM stdin;
            1\tfirst\t\\\\x00ff\t2026-11-23 07:00:00+00\t1
            2\tsecond\t\\\\x0a\t2026-11-23 07:00:00+00\t\\N
            \\.

            """
        let records = BackupFile.history(script)
        #expect(records.map(\.version) == [1, 2] && records.map(\.name) == ["first", "second"])
        // As a session writes it whose `bytea_output` is `escape`.
        for (written, bytes) in [
            (#"a\\000\\377b"#, [97, 0, 255, 98]), (#"\\\\x41"#, [92, 120, 52, 49]), ("", []),
            (#"\\x5c78"#, [92, 120]), (#"\\\\\\134"#, [92, 92]),
        ] as [(String, [UInt8])] {
            #expect(BackupFile.bytes(written[...]) == bytes, "\(written)")
        }
        #expect(records.map(\.checksum) == [[0, 255], [10]] && records.map(\.oldestProgram) == [1, 2])
    }
}

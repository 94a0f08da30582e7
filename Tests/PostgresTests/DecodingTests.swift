import Postgres
import Testing

@Suite struct DecodingTests {
    private struct Wrong<Value: PostgresValue & Sendable>: Statement {
        static var sql: SQL<Self> { "SELECT 'text'::text, NULL::bigint, 5::bigint" }
        static func decode(_ row: inout RowReader) throws(PostgresError) -> Value {
            row.skip()
            return try row.next()
        }
    }

    private struct TooFar: Statement {
        static let sql: SQL<Self> = "SELECT 1"
        static func decode(_ row: inout RowReader) throws(PostgresError) -> Int32 {
            row.skip()
            return try row.next()
        }
    }

    private func failure<S: Statement>(of statement: S) async throws -> DecodingFailure? {
        try await withClient { client in
            do throws(PostgresError) {
                _ = try await client.execute(statement)
            } catch .decoding(let failure) {
                return failure
            }
            return nil
        }
    }

    @Test func `NULL is refused where the type has no optional`() async throws {
        let failure = try #require(try await failure(of: Wrong<Int64>()))
        #expect(failure.reason == .null)
        #expect(failure.column == 1)
        #expect(failure.statement.contains("Wrong"))
    }

    @Test func `a column of another type is refused, whatever its bytes`() async throws {
        let failure = try #require(try await failure(of: Wrong<UUID?>()))
        #expect(failure.reason == .type(expected: 2950, found: 20))
    }

    @Test func `a column that is not there is refused`() async throws {
        #expect(try await failure(of: TooFar())?.reason == .missing)
    }

    @Test(
        arguments: [
            [], [0, 0, 0, 1], [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 20, 0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 1],
            [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 20, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 9, 1],
            [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 20, 1],
        ] as [[UInt8]])
    func `a malformed array is no array`(bytes: [UInt8]) {
        let array = bytes.withUnsafeBytes { [Int64].decode($0) }
        #expect(array == nil)
    }

    @Test func `text that is not UTF-8 and integers of another size are refused`() {
        #expect([0xff as UInt8].withUnsafeBytes { String.decode($0) } == nil)
        #expect([0 as UInt8, 1].withUnsafeBytes { Int32.decode($0) } == nil)
        #expect([2 as UInt8].withUnsafeBytes { Bool.decode($0) } == nil)
        #expect([UInt8](repeating: 0, count: 15).withUnsafeBytes { UUID.decode($0) } == nil)
    }
}

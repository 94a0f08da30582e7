import SalternTesting
import Testing

@testable import Postgres

/// Statements whose parameters are named where they stand.
@Suite struct SQLTests {
    private struct Inner: Sendable {
        let name: String
        let bytes: [UInt8]?
    }

    private struct Find: Statement {
        typealias Row = Int64
        let id: Int64
        let inner: Inner
        var double: Int64 { id * 2 }

        static let sql: SQL<Self> = """
            SELECT \(\.id) + \(\.double) + \(\.id) + \(limit) + length(\(\.inner.name)) + \(\.double) \
            + coalesce(octet_length(\(\.inner.bytes)), 0)
            """
        private static let limit = 1_000
    }

    @Test func `a parameter has one number, however often it stands, and is sent once`() async throws {
        #expect(
            Find.sql.text
                == "SELECT $1 + $2 + $1 + 1000 + length($3) + $2 + coalesce(octet_length($4), 0)")
        let rows = try await withClient { client in
            [
                try await client.execute(Find(id: 5, inner: Inner(name: "four", bytes: nil))),
                try await client.execute(Find(id: 7, inner: Inner(name: "", bytes: [1, 2]))),
            ]
        }
        #expect(rows == [[1_034], [1_044]] as [[Int64]])
    }

    private struct Part: Sendable {
        let moment: Int32
        static let condition: SQL<Self> = "(\(\.moment) > 3 AND \(\.moment) < 9)"
    }

    private struct Whole: Statement {
        typealias Row = Bool
        let limit: Int32
        let part: Part
        let other: Part

        static let sql: SQL<Self> = """
            SELECT \(Part.condition, of: \.part) AND \(\.part.moment) < \(\.limit) AND NOT \(Part.condition, of: \.other)
            """
    }

    @Test func `a part has the parameters of the property that it is about`() async throws {
        #expect(Whole.sql.text == "SELECT ($1 > 3 AND $1 < 9) AND $1 < $2 AND NOT ($3 > 3 AND $3 < 9)")
        let rows = try await withClient { client in
            [
                try await client.execute(Whole(limit: 6, part: Part(moment: 5), other: Part(moment: 1)))[0],
                try await client.execute(Whole(limit: 6, part: Part(moment: 7), other: Part(moment: 1)))[0],
                try await client.execute(Whole(limit: 6, part: Part(moment: 5), other: Part(moment: 5)))[0],
            ]
        }
        #expect(rows == [true, false, false])
    }

    private struct Surroundings: SQLContext {
        enum Parameter { case account, now }
        let account: Int64
        let now: Int32

        func append(_ parameter: Parameter, to parameters: inout Parameters) {
            switch parameter {
            case .account: parameters.append(account)
            case .now: parameters.append(now)
            }
        }

        static let isLive: SQLTemplate<Never, Surroundings> = "(\(.account) = 4 AND \(.now) > 2)"
        /// A part of a part.
        static let isLiveNow: SQLTemplate<Never, Surroundings> = "(\(isLive) AND \(.now) < 10)"
    }

    private struct Wrapped: Sendable {
        let id: Int64
        static let sql: SQLTemplate<Self, Surroundings> = "SELECT \(Surroundings.isLiveNow) AND \(\.id) = \(.account)"
    }

    private struct Wrapper: Statement {
        typealias Row = Bool
        let surroundings: Surroundings
        let wrapped: Wrapped

        static var sql: SQL<Self> { Wrapped.sql.lifted(\.wrapped, \.surroundings) }
        func bind(to parameters: inout Parameters) { Wrapped.sql.bind(wrapped, surroundings, to: &parameters) }
    }

    private struct Direct: Statement {
        typealias Row = Bool
        let surroundings: Surroundings
        let id: Int64
        static let sql: SQL<Self> = "SELECT \(Surroundings.isLive, from: \.surroundings) AND \(\.id) = 4"
    }

    @Test func `what the surroundings supply has names of its own, in parts and in parts of parts`() async throws {
        let text = "SELECT (($1 = 4 AND $2 > 2) AND $2 < 10) AND $3 = $1"
        #expect(Wrapped.sql.text == text && Wrapper.sql.text == text)
        let rows = try await withClient { client in
            [
                try await client.execute(Wrapper(surroundings: .init(account: 4, now: 3), wrapped: .init(id: 4)))[0],
                try await client.execute(Wrapper(surroundings: .init(account: 4, now: 30), wrapped: .init(id: 4)))[0],
                try await client.execute(Wrapper(surroundings: .init(account: 4, now: 3), wrapped: .init(id: 5)))[0],
                try await client.execute(Direct(surroundings: .init(account: 4, now: 3), id: 4))[0],
                try await client.execute(Direct(surroundings: .init(account: 3, now: 3), id: 4))[0],
            ]
        }
        #expect(rows == [true, false, false, true, false])
    }

    private struct Pair: Statement {
        typealias Row = Bool
        let mine: Surroundings
        let other: Surroundings
        static let sql: SQL<Self> = """
            SELECT \(Surroundings.isLive, from: \.mine) AND NOT \(Surroundings.isLive, from: \.other) \
            AND \(\.mine.account) = 4
            """
    }

    private struct TwoWrapped: Statement {
        typealias Row = Bool
        let first: Wrapper
        let second: Wrapper
        static let sql: SQL<Self> = "SELECT (\(Wrapper.sql, of: \.first)) AND NOT (\(Wrapper.sql, of: \.second))"
    }

    @Test func `the same name of other surroundings is another parameter`() async throws {
        #expect(Pair.sql.text == "SELECT ($1 = 4 AND $2 > 2) AND NOT ($3 = 4 AND $4 > 2) AND $5 = 4")
        let half = "SELECT (($1 = 4 AND $2 > 2) AND $2 < 10) AND $3 = $1"
        let other = "SELECT (($4 = 4 AND $5 > 2) AND $5 < 10) AND $6 = $4"
        #expect(TwoWrapped.sql.text == "SELECT (\(half)) AND NOT (\(other))")
        let (live, ended) = (Surroundings(account: 4, now: 3), Surroundings(account: 5, now: 3))
        let rows = try await withClient { client in
            [
                try await client.execute(Pair(mine: live, other: ended))[0],
                try await client.execute(Pair(mine: live, other: live))[0],
                try await client.execute(
                    TwoWrapped(
                        first: Wrapper(surroundings: live, wrapped: Wrapped(id: 4)),
                        second: Wrapper(surroundings: ended, wrapped: Wrapped(id: 4))))[0],
            ]
        }
        #expect(rows == [true, false, true])
    }

    private enum Word: String {
        case plain
        case quoted = "it's"
    }

    @Test func `fragments are made of literals, numbers and words that are quoted`() {
        let columns: SQLFragment = "a, b"
        let both: SQLFragment = "SELECT \(columns), \(7), \(Word.plain), \(Word.quoted)"
        #expect(both.text == "SELECT a, b, 7, 'plain', 'it''s'")
        let names: [SQLFragment] = ["x", "y"]
        #expect(names.joined(separator: ", ").text == "x, y")
        #expect([SQLFragment]().joined(separator: ", ").text.isEmpty)
        let statement: SQL<Find> = "SELECT \(columns) WHERE w = \(Word.quoted) AND i = \(\.id)"
        #expect(statement.text == "SELECT a, b WHERE w = 'it''s' AND i = $1")
    }
}

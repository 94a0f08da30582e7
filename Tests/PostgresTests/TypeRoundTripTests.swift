import Postgres
import Testing

@Suite struct TypeRoundTripTests {
    private func expectRoundTrip<Value: PostgresValue & Sendable & Equatable>(_ values: [Value]) async throws {
        let returned = try await withClient { client in
            var returned: [Value] = []
            for value in values { returned += try await client.execute(Echo(value: value)) }
            return returned
        }
        #expect(returned == values)
    }

    @Test func `integers of every size`() async throws {
        try await expectRoundTrip([Int16.min, -1, 0, 1, .max])
        try await expectRoundTrip([Int32.min, -1, 0, 1, .max])
        try await expectRoundTrip([Int64.min, -1, 0, 1, .max])
        try await expectRoundTrip([Int64?.none, 7])
    }

    @Test func `truth values and floating-point numbers`() async throws {
        try await expectRoundTrip([true, false])
        try await expectRoundTrip([Bool?.none, true])
        try await expectRoundTrip([0.0, -1.5, .greatestFiniteMagnitude, .leastNonzeroMagnitude, .infinity, -.infinity])
        let nan = try await withClient { client in try await client.execute(Echo(value: Double.nan)) }
        #expect(nan.count == 1 && nan[0].isNaN)
    }

    @Test func `text and bytes, empty, long and NULL`() async throws {
        try await expectRoundTrip(["", "a", "żółć 🧂", String(repeating: "x", count: 200_000)])
        try await expectRoundTrip([String?.none, ""])
        try await expectRoundTrip([[UInt8](), [0], Array(0...255), [UInt8](repeating: 7, count: 1_000_000)])
        try await expectRoundTrip([[UInt8]?.none, []])
    }

    @Test func `UUIDs`() async throws {
        let uuid = try #require(UUID("01890a5d-ac96-774b-bcce-b302099a8057"))
        try await expectRoundTrip([UUID(high: 0, low: 0), uuid, UUID(high: .max, low: .max)])
        try await expectRoundTrip([UUID?.none, uuid])
    }

    @Test func `moments, infinities included`() async throws {
        try await expectRoundTrip([
            Timestamp(unixSeconds: 0), Timestamp(microsecondsSince2000: 0), Timestamp(microsecondsSince2000: -1),
            Timestamp(unixMicroseconds: 1_763_759_519_123_456), .distantFuture, .distantPast,
        ])
        try await expectRoundTrip([Timestamp?.none, Timestamp(unixSeconds: 1)])
    }

    @Test func `arrays of every element, empty, with NULL inside and NULL themselves`() async throws {
        try await expectRoundTrip([[Int16](), [1, -2]])
        try await expectRoundTrip([[Int32](), [1, -2]])
        try await expectRoundTrip([[Int64](), [.min, .max]])
        try await expectRoundTrip([[Int64?](), [nil, 1, nil]])
        try await expectRoundTrip([[Bool](), [true, false]])
        try await expectRoundTrip([[Double](), [1.5]])
        try await expectRoundTrip([[String](), ["", "NULL", "{\"a\"}"]])
        try await expectRoundTrip([[String?](), [nil, ""]])
        try await expectRoundTrip([[UUID](), [UUID(high: 1, low: 2), UUID(high: 3, low: 4)]])
        try await expectRoundTrip([[Timestamp](), [Timestamp(unixSeconds: 5)]])
        try await expectRoundTrip([[[UInt8]](), [[], [1, 2, 3]]])
        try await expectRoundTrip([[[UInt8]?](), [nil, [], [9]]])
        try await expectRoundTrip([[UUID]?.none, []])
    }

    @Test func `the server agrees with the meaning of the binary formats`() async throws {
        struct Meanings: Statement {
            static let sql: SQL<Self> = """
                SELECT \(\.id)::uuid::text, \(\.moment)::timestamptz AT TIME ZONE 'UTC' = '2000-01-01 00:00:01.5',
                    encode(\(\.bytes)::bytea, 'hex'), \(\.number)::float8::text, \(\.integers)::integer[]::text,
                    \(\.strings)::bytea[]::text
                """
            let id = UUID(high: 0x0011_2233_4455_6677, low: 0x8899_aabb_ccdd_eeff)
            let moment = Timestamp(microsecondsSince2000: 1_500_000)
            let bytes: [UInt8] = [1, 0xfe]
            let number = -2.5
            let integers: [Int32?] = [3, nil]
            let strings: [[UInt8]] = [[1], []]

            static func decode(_ row: inout RowReader) throws(PostgresError) -> [String] {
                [
                    try row.next(), try row.next(Bool.self) ? "same" : "other", try row.next(), try row.next(),
                    try row.next(), try row.next(),
                ]
            }
        }
        let meanings = try await withClient { client in try await client.execute(Meanings()) }
        #expect(
            meanings == [
                [
                    "00112233-4455-6677-8899-aabbccddeeff", "same", "01fe", "-2.5", "{3,NULL}", #"{"\\x01","\\x"}"#,
                ]
            ])
    }
}

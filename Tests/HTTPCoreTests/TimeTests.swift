import HTTPCore
import Testing

@Suite struct TimeTests {
    @Test(arguments: [
        (0, 1970, 1, 1), (-1, 1969, 12, 31), (59, 1970, 3, 1), (11_016, 2000, 2, 29), (11_017, 2000, 3, 1),
        (19_782, 2024, 2, 29), (20_483, 2026, 1, 30), (47_540, 2100, 2, 28), (47_541, 2100, 3, 1), (-719_162, 1, 1, 1),
        (-719_528, 0, 1, 1), (-719_529, -1, 12, 31), (2_932_896, 9999, 12, 31), (-141_427, 1582, 10, 15),
    ])
    func `known days have their numbers`(number: Int, year: Int, month: Int, day: Int) {
        let date = CivilDate(year: year, month: month, day: day)
        #expect(date.daysSinceEpoch == number)
        #expect(CivilDate(daysSinceEpoch: number) == date)
        #expect(date.isValid)
    }

    @Test func `every day of five hundred years follows the one before`() {
        var expected = CivilDate(year: 1799, month: 12, day: 31)
        let lengths = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
        for number in (expected.daysSinceEpoch + 1)...CivilDate(year: 2300, month: 1, day: 1).daysSinceEpoch {
            let isLeap = expected.year % 4 == 0 && (expected.year % 100 != 0 || expected.year % 400 == 0)
            let length = expected.month == 2 && isLeap ? 29 : lengths[expected.month - 1]
            if expected.day < length {
                expected.day += 1
            } else if expected.month < 12 {
                expected = CivilDate(year: expected.year, month: expected.month + 1, day: 1)
            } else {
                expected = CivilDate(year: expected.year + 1, month: 1, day: 1)
            }
            guard CivilDate(daysSinceEpoch: number) == expected, expected.daysSinceEpoch == number else {
                Issue.record("day \(number) is \(expected)")
                return
            }
        }
    }

    @Test(arguments: [
        (2026, 2, 29), (2100, 2, 29), (2026, 4, 31), (2026, 0, 1), (2026, 13, 1), (2026, 1, 0), (2026, 1, 32),
    ])
    func `days that do not exist are not valid`(year: Int, month: Int, day: Int) {
        #expect(!CivilDate(year: year, month: month, day: day).isValid)
    }

    @Test(arguments: [
        ("1970-01-01T00:00:00Z", 0), ("2026-02-01T12:30:00.25Z", 1_769_949_000_250_000),
        ("2026-02-01T12:30:00.000001Z", 1_769_949_000_000_001),
        ("2026-02-01T12:30:00.123456789Z", 1_769_949_000_123_456),
        ("1969-12-31T23:59:59.999999Z", -1), ("0000-01-01T00:00:00Z", -62_167_219_200_000_000),
        ("2026-02-01t12:30:00z", 1_769_949_000_000_000), ("2026-02-01T12:30:00+00:00", 1_769_949_000_000_000),
        ("2026-02-01T12:30:00-00:00", 1_769_949_000_000_000), ("2026-02-01T14:00:00.5+01:30", 1_769_949_000_500_000),
        ("2026-01-31T23:30:00-13:00", 1_769_949_000_000_000), ("2026-02-02T12:29:00+23:59", 1_769_949_000_000_000),
        ("2026-02-01T12:29:60Z", 1_769_949_000_000_000), ("2026-02-01T12:30:00.1234567890Z", 1_769_949_000_123_456),
        ("2026-02-01T12:30:00.000000000000000000Z", 1_769_949_000_000_000),
        ("9999-12-31T23:59:59.999999Z", 253_402_300_799_999_999), ("2000-02-29T00:00:00.5Z", 951_782_400_500_000),
    ])
    func `a time is read`(text: String, microseconds: Int64) {
        #expect(UTCTimestamp(rfc3339: text.utf8)?.microsecondsSinceEpoch == microseconds)
    }

    @Test(arguments: [
        "", "2026", "2026-02-01", "2026-02-01T12:30:00", "2026-02-01T12:30:00+0000", "2026-02-01T12:30:00+24:00",
        "2026-02-01T12:30:00+00:60", "2026-02-01T12:30:00+00", "2026-02-01T12:30:00+00:00Z",
        "0000-01-01T00:00:00+00:01",
        "9999-12-31T23:59:59-00:01", "2026-02-01T12:30:61Z",
        "2026-02-01 12:30:00Z", "2026-02-30T12:30:00Z", "2026-02-01T24:00:00Z", "2026-02-01T12:60:00Z",
        "2026-02-01T12:30:00.Z", "2026-02-01T12:30:00,5Z", "2026-02-01T12:30:00.+5Z",
        "+026-02-01T12:30:00Z", "2026-2-01T12:30:00ZZ", "2026-02-01T12:30:00Z ", " 2026-02-01T12:30:00Z",
        "2026-02-01T12:30Z",
        "2026-00-01T12:30:00Z", "2026-13-01T12:30:00Z", "20260-02-01T12:30:0Z",
        "2026-02-01T12:30:00.00000000000000000000000000000000000000000000000000Z",
    ])
    func `anything else is no time`(_ text: String) {
        #expect(UTCTimestamp(rfc3339: text.utf8) == nil)
    }

    @Test func `a time is written with the digits that are asked for`() {
        let time = UTCTimestamp(secondsSinceEpoch: 1_769_949_000, microseconds: 12_999)
        func written(_ digits: Int) -> String {
            var bytes: [UInt8] = []
            time.append(to: &bytes, fractionDigits: digits)
            return String(decoding: bytes, as: UTF8.self)
        }
        #expect(written(0) == "2026-02-01T12:30:00Z")
        #expect(written(3) == "2026-02-01T12:30:00.012Z")
        #expect(time.description == "2026-02-01T12:30:00.012999Z")
    }

    @Test func `times before the epoch and at the ends are written`() {
        #expect(UTCTimestamp(microsecondsSinceEpoch: -1).description == "1969-12-31T23:59:59.999999Z")
        #expect(UTCTimestamp(microsecondsSinceEpoch: .min).description == "0000-01-01T00:00:00.000000Z")
        #expect(UTCTimestamp(microsecondsSinceEpoch: .max).description == "9999-12-31T23:59:59.999999Z")
    }

    @Test func `a time reads back as itself`() {
        var generator = SystemRandomNumberGenerator()
        for _ in 0..<1000 {
            let microseconds = Int64.random(in: -62_167_219_200_000_000...253_402_300_799_999_999, using: &generator)
            let time = UTCTimestamp(microsecondsSinceEpoch: microseconds)
            #expect(UTCTimestamp(rfc3339: time.description.utf8) == time)
        }
    }
}

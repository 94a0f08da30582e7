/// A point in time in microseconds since 1970-01-01T00:00:00Z, without leap seconds.
public struct UTCTimestamp: Hashable, Comparable, Sendable {
    public let microsecondsSinceEpoch: Int64

    public init(microsecondsSinceEpoch: Int64) {
        self.microsecondsSinceEpoch = microsecondsSinceEpoch
    }

    /// Creates a timestamp from whole seconds and microseconds after them; times outside of Int64's range in
    /// microseconds (some 292,000 years) are a programming error.
    public init(secondsSinceEpoch: Int64, microseconds: Int64 = 0) {
        self.init(microsecondsSinceEpoch: secondsSinceEpoch * 1_000_000 + microseconds)
    }

    public static func < (left: UTCTimestamp, right: UTCTimestamp) -> Bool {
        left.microsecondsSinceEpoch < right.microsecondsSinceEpoch
    }

    /// Appends the RFC 3339 form, for example `2026-02-01T12:30:00.250Z`.
    ///
    /// Years outside of 0000...9999 have no such form; they come out as the nearest instant that has one.
    ///
    /// - Parameters:
    ///   - output: Where to append.
    ///   - fractionDigits: 0 to 6; further digits are cut off.
    public func append(to output: inout some ByteOutput, fractionDigits: Int) {
        let clamped = min(max(microsecondsSinceEpoch, Self.earliest), Self.latest)
        let seconds = CivilDate.floorDivide(Int(clamped), 1_000_000)
        let microseconds = Int(clamped) - seconds * 1_000_000
        let days = CivilDate.floorDivide(seconds, 86_400)
        let secondOfDay = seconds - days * 86_400
        let date = CivilDate(daysSinceEpoch: days)
        DecimalDigits.append(date.year, digits: 4, to: &output)
        output.append(ASCII.minus)
        DecimalDigits.append(date.month, digits: 2, to: &output)
        output.append(ASCII.minus)
        DecimalDigits.append(date.day, digits: 2, to: &output)
        output.append(UInt8(ascii: "T"))
        DecimalDigits.append(secondOfDay / 3600, digits: 2, to: &output)
        output.append(ASCII.colon)
        DecimalDigits.append(secondOfDay / 60 % 60, digits: 2, to: &output)
        output.append(ASCII.colon)
        DecimalDigits.append(secondOfDay % 60, digits: 2, to: &output)
        if fractionDigits > 0 {
            output.append(ASCII.dot)
            var fraction = microseconds
            for _ in min(fractionDigits, 6)..<6 { fraction /= 10 }
            DecimalDigits.append(fraction, digits: min(fractionDigits, 6), to: &output)
        }
        output.append(UInt8(ascii: "Z"))
    }

    /// 0000-01-01T00:00:00Z.
    private static let earliest: Int64 = -62_167_219_200_000_000
    /// 9999-12-31T23:59:59.999999Z.
    private static let latest: Int64 = 253_402_300_799_999_999
}

extension UTCTimestamp: CustomStringConvertible {
    /// The RFC 3339 form with microseconds.
    public var description: String {
        var bytes: [UInt8] = []
        append(to: &bytes, fractionDigits: 6)
        return String(decoding: bytes, as: UTF8.self)
    }
}

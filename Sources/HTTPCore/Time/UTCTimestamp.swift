/// A point in time in microseconds since 1970-01-01T00:00:00Z, without leap seconds.
public struct UTCTimestamp: Hashable, Comparable, Sendable {
    public let microsecondsSinceEpoch: Int64

    public init(microsecondsSinceEpoch: Int64) {
        self.microsecondsSinceEpoch = microsecondsSinceEpoch
    }

    /// Creates a timestamp from whole seconds and microseconds after them. Times outside the range of Int64 in
    /// microseconds (about 292,000 years) are a programming error.
    public init(secondsSinceEpoch: Int64, microseconds: Int64 = 0) {
        self.init(microsecondsSinceEpoch: secondsSinceEpoch * 1_000_000 + microseconds)
    }

    public static func < (left: UTCTimestamp, right: UTCTimestamp) -> Bool {
        left.microsecondsSinceEpoch < right.microsecondsSinceEpoch
    }

    /// Appends the RFC 3339 form, for example `2026-02-01T12:30:00.250Z`.
    ///
    /// Years outside 0000...9999 have no such form, and become the nearest time that has one.
    ///
    /// - Parameters:
    ///   - output: Receives the text.
    ///   - fractionDigits: 0 to 6. Further digits are cut off.
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

extension UTCTimestamp {
    /// Reads a `date-time` of RFC 3339 §5.6, with any offset and letters in either case.
    ///
    /// Digits of the second after the sixth are cut off. A leap second becomes the next second. Returns nil for an
    /// impossible date, a text of more than 64 bytes and a time outside the years 0 to 9999.
    public init?(rfc3339 text: some Collection<UInt8>) {
        let bytes = Array(text.prefix(65))
        guard bytes.count <= 64 else { return nil }
        var reader = Reader(bytes: bytes)
        guard let year = reader.number(digits: 4), reader.skip(ASCII.minus), let month = reader.number(digits: 2),
            reader.skip(ASCII.minus), let day = reader.number(digits: 2), reader.skip(UInt8(ascii: "t")),
            let hour = reader.number(digits: 2), reader.skip(ASCII.colon), let minute = reader.number(digits: 2),
            reader.skip(ASCII.colon), let second = reader.number(digits: 2), hour < 24, minute < 60, second <= 60,
            let microseconds = reader.fraction(), let offset = reader.offset(), reader.isAtEnd
        else { return nil }
        let date = CivilDate(year: year, month: month, day: day)
        guard date.isValid else { return nil }
        let seconds = date.daysSinceEpoch * 86_400 + hour * 3600 + minute * 60 + second - offset
        guard (-62_167_219_200...253_402_300_799).contains(seconds) else { return nil }
        self.init(secondsSinceEpoch: Int64(seconds), microseconds: Int64(microseconds))
    }

    private struct Reader {
        let bytes: [UInt8]
        private var position = 0

        init(bytes: [UInt8]) { self.bytes = bytes }

        var isAtEnd: Bool { position == bytes.count }

        private var next: UInt8? { position < bytes.count ? bytes[position] : nil }

        /// Takes a byte. A letter is given in lower case and accepted in either case.
        mutating func skip(_ byte: UInt8) -> Bool {
            guard let next, ASCII.lowercased(next) == byte else { return false }
            position += 1
            return true
        }

        mutating func number(digits count: Int) -> Int? {
            var value = 0
            for _ in 0..<count {
                guard let byte = next, ASCII.isDigit(byte) else { return nil }
                value = value * 10 + Int(byte - ASCII.zero)
                position += 1
            }
            return value
        }

        /// Takes the fraction of the second, if any, in microseconds.
        mutating func fraction() -> Int? {
            guard skip(ASCII.dot) else { return 0 }
            let start = position
            var microseconds = 0
            while let byte = next, ASCII.isDigit(byte) {
                if position - start < 6 { microseconds = microseconds * 10 + Int(byte - ASCII.zero) }
                position += 1
            }
            guard position > start else { return nil }
            for _ in min(position - start, 6)..<6 { microseconds *= 10 }
            return microseconds
        }

        /// Takes `Z` or the difference to UTC, in seconds.
        mutating func offset() -> Int? {
            if skip(UInt8(ascii: "z")) { return 0 }
            let isNegative = skip(ASCII.minus)
            guard isNegative || skip(ASCII.plus), let hours = number(digits: 2), skip(ASCII.colon),
                let minutes = number(digits: 2), hours < 24, minutes < 60
            else { return nil }
            let seconds = hours * 3600 + minutes * 60
            return isNegative ? -seconds : seconds
        }
    }
}

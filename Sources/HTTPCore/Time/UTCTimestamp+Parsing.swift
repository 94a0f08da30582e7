extension UTCTimestamp {
    /// Reads a `date-time` of RFC 3339 §5.6, with any offset and letters in either case.
    ///
    /// Digits of the second after the sixth are cut off. A leap second is the second after it. An impossible date, a text
    /// of more than 64 bytes and a moment outside of the years 0 to 9999 give nil.
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

        /// Takes a byte; a letter, which is given in lower case, in either case.
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

        /// Takes the fraction of the second, if there is one, in microseconds.
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

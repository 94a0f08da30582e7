extension UTCTimestamp {
    /// Reads RFC 3339 in UTC: `YYYY-MM-DDThh:mm:ss`, up to nine digits of the second (those after the sixth are cut
    /// off), then `Z`. Offsets, lower-case letters, leap seconds and impossible dates give nil.
    public init?(rfc3339 text: some Collection<UInt8>) {
        let bytes = Array(text.prefix(31))
        guard text.count == bytes.count, bytes.count >= 20, bytes.last == UInt8(ascii: "Z") else { return nil }
        func number(_ range: Range<Int>) -> Int? {
            var value = 0
            for byte in bytes[range] {
                guard ASCII.isDigit(byte) else { return nil }
                value = value * 10 + Int(byte - ASCII.zero)
            }
            return value
        }
        let separators: [(Int, UInt8)] = [
            (4, ASCII.minus), (7, ASCII.minus), (10, UInt8(ascii: "T")), (13, ASCII.colon), (16, ASCII.colon),
        ]
        guard separators.allSatisfy({ bytes[$0.0] == $0.1 }), let year = number(0..<4), let month = number(5..<7),
            let day = number(8..<10), let hour = number(11..<13), let minute = number(14..<16),
            let second = number(17..<19), hour < 24, minute < 60, second < 60
        else { return nil }
        var microseconds = 0
        if bytes.count > 20 {
            guard bytes[19] == ASCII.dot, (22...30).contains(bytes.count), let fraction = number(20..<(bytes.count - 1))
            else { return nil }
            microseconds = fraction
            for _ in (bytes.count - 21)..<max(bytes.count - 21, 6) { microseconds *= 10 }
            for _ in 6..<max(6, bytes.count - 21) { microseconds /= 10 }
        }
        let date = CivilDate(year: year, month: month, day: day)
        guard date.isValid else { return nil }
        let seconds = date.daysSinceEpoch * 86_400 + hour * 3600 + minute * 60 + second
        self.init(secondsSinceEpoch: Int64(seconds), microseconds: Int64(microseconds))
    }
}

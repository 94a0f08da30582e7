import HTTPCore

/// The value of a `Date` field (IMF-fixdate, RFC 9110 §5.6.7), for example `Sun, 06 Nov 1994 08:49:37 GMT`.
///
/// Create one each second for all responses of that second.
public struct HTTPDate: Sendable, Hashable {
    /// 29 ASCII characters.
    public let bytes: [UInt8]

    /// Creates the date of a time in seconds since 1970-01-01T00:00:00Z; its year must be in 0...9999.
    public init(secondsSinceEpoch seconds: Int) {
        precondition((-62_167_219_200...253_402_300_799).contains(seconds), "the year has four digits")
        let days = CivilDate.floorDivide(seconds, 86_400)
        let second = seconds - days * 86_400
        let date = CivilDate(daysSinceEpoch: days)
        // 1970-01-01 was a Thursday.
        let weekday = days + 4 - CivilDate.floorDivide(days + 4, 7) * 7
        var text: [UInt8] = []
        text.reserveCapacity(29)
        text += Self.name(weekday, in: "SunMonTueWedThuFriSat")
        text += [ASCII.comma, ASCII.space]
        DecimalDigits.append(date.day, digits: 2, to: &text)
        text.append(ASCII.space)
        text += Self.name(date.month - 1, in: "JanFebMarAprMayJunJulAugSepOctNovDec")
        text.append(ASCII.space)
        DecimalDigits.append(date.year, digits: 4, to: &text)
        text.append(ASCII.space)
        DecimalDigits.append(second / 3600, digits: 2, to: &text)
        text.append(ASCII.colon)
        DecimalDigits.append(second / 60 % 60, digits: 2, to: &text)
        text.append(ASCII.colon)
        DecimalDigits.append(second % 60, digits: 2, to: &text)
        text += " GMT".utf8
        bytes = text
    }

    private static func name(_ index: Int, in names: String) -> [UInt8] {
        Array(names.utf8.dropFirst(index * 3).prefix(3))
    }
}

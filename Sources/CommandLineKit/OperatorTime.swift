/// A time as operators write it: a whole number and its unit, `90s`, `15m`, `12h` or `30d`.
package enum OperatorTime {
    /// Reads one; nil when the text is none.
    package static func duration(_ text: String) -> Duration? {
        let units: [Character: Int] = ["s": 1, "m": 60, "h": 3_600, "d": 86_400]
        guard let unit = text.last.flatMap({ units[$0] }), let number = Int(text.dropLast()), number >= 0,
            case let (seconds, overflow) = number.multipliedReportingOverflow(by: unit), !overflow
        else { return nil }
        return .seconds(seconds)
    }
}

extension Arguments {
    /// Takes `--name TIME`; nil when it is absent.
    package mutating func duration(_ name: String, in range: ClosedRange<Duration>) throws(UsageError) -> Duration? {
        guard let text = try option(name) else { return nil }
        guard let duration = OperatorTime.duration(text), range.contains(duration) else {
            throw UsageError(
                message: "\(name) must be a time such as 12h or 30d, from \(range.lowerBound) to \(range.upperBound)")
        }
        return duration
    }
}

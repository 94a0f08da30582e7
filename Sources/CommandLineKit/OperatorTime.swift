/// A time as operators write it: a whole number and its unit, `90s`, `15m`, `12h` or `30d`.
package enum OperatorTime {
    /// Reads a time, or returns nil for other text.
    package static func duration(_ text: String) -> Duration? {
        let units: [Character: Int] = ["s": 1, "m": 60, "h": 3_600, "d": 86_400]
        guard let unit = text.last.flatMap({ units[$0] }), let number = OperatorNumber.integer(text.dropLast()),
            number >= 0,
            case let (seconds, overflow) = number.multipliedReportingOverflow(by: unit), !overflow
        else { return nil }
        return .seconds(seconds)
    }

    /// Returns whole seconds in the largest unit of which they are a multiple.
    package static func text(_ duration: Duration) -> String {
        let seconds = duration.components.seconds
        let units = [("d", Int64(86_400)), ("h", 3_600), ("m", 60)]
        for (unit, length) in units where seconds > 0 && seconds.isMultiple(of: length) {
            return "\(seconds / length)\(unit)"
        }
        return "\(seconds)s"
    }

    /// Returns the bounds for people.
    package static func text(_ range: ClosedRange<Duration>) -> String {
        "\(text(range.lowerBound)) to \(text(range.upperBound))"
    }
}

extension Arguments {
    /// Takes `--name TIME`. Returns nil when it is absent.
    package mutating func duration(_ name: String, in range: ClosedRange<Duration>) throws(UsageError) -> Duration? {
        guard let text = try option(name) else { return nil }
        guard let duration = OperatorTime.duration(text), range.contains(duration) else {
            throw UsageError(
                message: "\(name) must be a time such as 12h or 30d, from \(OperatorTime.text(range))")
        }
        return duration
    }
}

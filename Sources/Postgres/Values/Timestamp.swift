/// A point in time as in PostgreSQL's `timestamptz`: microseconds since 2000-01-01 00:00:00 UTC.
public struct Timestamp: Sendable, Hashable {
    /// Microseconds since 2000-01-01 00:00:00 UTC; negative before it.
    public var microsecondsSince2000: Int64

    /// Seconds from 1970-01-01 to 2000-01-01.
    private static let epochDistance: Int64 = 946_684_800

    /// PostgreSQL's `infinity`, later than every other value.
    public static let distantFuture = Timestamp(microsecondsSince2000: .max)
    /// PostgreSQL's `-infinity`, earlier than every other value.
    public static let distantPast = Timestamp(microsecondsSince2000: .min)

    /// The finite values that PostgreSQL stores: from 4714-11-24 BC to the end of the year 294276.
    public static let storable =
        Timestamp(
            microsecondsSince2000: -211_813_488_000_000_000)...Timestamp(
            microsecondsSince2000: 9_223_371_331_199_999_999)

    /// Makes a timestamp from PostgreSQL's own count.
    public init(microsecondsSince2000: Int64) {
        self.microsecondsSince2000 = microsecondsSince2000
    }

    /// Makes a timestamp from Unix seconds. A value out of range becomes the nearest infinity.
    public init(unixSeconds: Int64) {
        let (microseconds, overflow) = unixSeconds.multipliedReportingOverflow(by: 1_000_000)
        self.init(unixMicroseconds: overflow ? (unixSeconds < 0 ? .min : .max) : microseconds)
    }

    /// Makes a timestamp from microseconds since 1970-01-01 00:00:00 UTC. `Int64.max` and values out of range become an
    /// infinity.
    public init(unixMicroseconds: Int64) {
        microsecondsSince2000 =
            unixMicroseconds == .max
            ? .max : unixMicroseconds.subtractingSaturated(Self.epochDistance * 1_000_000)
    }

    /// Whole seconds since 1970-01-01 00:00:00 UTC, rounded down.
    public var unixSeconds: Int64 {
        let (quotient, remainder) = microsecondsSince2000.quotientAndRemainder(dividingBy: 1_000_000)
        return quotient + Self.epochDistance - (remainder < 0 ? 1 : 0)
    }

    /// Microseconds since 1970-01-01 00:00:00 UTC; saturates near the infinities.
    public var unixMicroseconds: Int64 {
        microsecondsSince2000.addingSaturated(Self.epochDistance * 1_000_000)
    }

    /// Adds `duration` in whole microseconds. Infinities stay unchanged.
    public static func + (moment: Timestamp, duration: Duration) -> Timestamp {
        if moment == .distantFuture || moment == .distantPast { return moment }
        return Timestamp(microsecondsSince2000: moment.microsecondsSince2000.addingSaturated(duration.microseconds))
    }

    /// Subtracts `duration` in whole microseconds. Infinities stay unchanged.
    public static func - (moment: Timestamp, duration: Duration) -> Timestamp { moment + (.zero - duration) }

    /// Returns the time from `earlier` to `later`.
    public static func - (later: Timestamp, earlier: Timestamp) -> Duration {
        .microseconds(later.microsecondsSince2000.subtractingSaturated(earlier.microsecondsSince2000))
    }
}

extension Timestamp: Comparable {
    public static func < (left: Timestamp, right: Timestamp) -> Bool {
        left.microsecondsSince2000 < right.microsecondsSince2000
    }
}

extension Duration {
    /// Whole microseconds, rounded towards zero and saturated at the bounds of `Int64`.
    var microseconds: Int64 {
        let (seconds, attoseconds) = components
        let (whole, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000)
        if overflow { return seconds < 0 ? .min : .max }
        return whole.addingSaturated(attoseconds / 1_000_000_000_000)
    }
}

extension Int64 {
    func addingSaturated(_ other: Int64) -> Int64 {
        let (sum, overflow) = addingReportingOverflow(other)
        return overflow ? (other < 0 ? .min : .max) : sum
    }

    func subtractingSaturated(_ other: Int64) -> Int64 {
        let (difference, overflow) = subtractingReportingOverflow(other)
        return overflow ? (other < 0 ? .max : .min) : difference
    }
}

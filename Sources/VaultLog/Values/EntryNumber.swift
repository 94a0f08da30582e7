/// The number of an entry in the membership log of a vault, from 1.
public struct EntryNumber: Hashable, Comparable, Sendable {
    /// The highest number. By ``LogBounds`` no log reaches it.
    public static let limit: UInt64 = 4_096
    /// The number of the founding entry.
    public static let first = EntryNumber(unchecked: 1)

    /// The number.
    public let value: UInt64

    /// Creates a number.
    /// - Returns: nil for 0 and above ``limit``.
    public init?(_ value: UInt64) {
        guard (1...Self.limit).contains(value) else { return nil }
        self.value = value
    }

    private init(unchecked value: UInt64) { self.value = value }

    /// The next number, or nil at the limit.
    public var next: EntryNumber? { EntryNumber(value + 1) }

    public static func < (left: EntryNumber, right: EntryNumber) -> Bool { left.value < right.value }

    /// The number as 8 bytes.
    var bytes: [UInt8] { value.bigEndianBytes }
}

/// The time of an entry by its author's clock, in whole seconds since 1970.
///
/// Fractions of a second would be a fingerprint of the device's clock.
public struct EntryTime: Hashable, Comparable, Sendable {
    /// The end of the year 9999.
    public static let limit: UInt64 = 253_402_300_799
    /// The distance from the server's clock up to which it accepts a new entry, in seconds.
    public static let tolerance: UInt64 = 300

    /// Seconds since 1970.
    public let seconds: UInt64

    /// The beginning of 1970.
    static let beginning = EntryTime(unchecked: 0)

    /// Creates a time.
    /// - Returns: nil above ``limit``.
    public init?(seconds: UInt64) {
        guard seconds <= Self.limit else { return nil }
        self.seconds = seconds
    }

    private init(unchecked seconds: UInt64) { self.seconds = seconds }

    public static func < (left: EntryTime, right: EntryTime) -> Bool { left.seconds < right.seconds }

    /// Returns true for an entry that can have been made just now.
    public func isPlausible(at now: EntryTime) -> Bool {
        max(self, now).seconds - min(self, now).seconds <= Self.tolerance
    }

    /// Returns true for an entry that a member puts back after a restored backup: it may be old, and not of the future.
    public func isPossible(at now: EntryTime) -> Bool { seconds <= now.seconds + Self.tolerance }

    /// The time as 8 bytes.
    var bytes: [UInt8] { seconds.bigEndianBytes }
}

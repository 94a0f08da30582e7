internal import Foundation

/// A file descriptor that is closed on release.
final class Descriptor: Sendable {
    let number: Int32
    private let end: @Sendable (Int32) -> Void

    init?(_ number: Int32, end: @escaping @Sendable (Int32) -> Void = { close($0) }) {
        guard number >= 0 else { return nil }
        self.number = number
        self.end = end
    }

    deinit { end(number) }
}

extension timespec {
    /// The time in nanoseconds since 1970, limited to 292 years before and after.
    var nanoseconds: Int64 {
        let (product, isTooFar) = Int64(tv_sec).multipliedReportingOverflow(by: 1_000_000_000)
        let (sum, isFurther) = product.addingReportingOverflow(Int64(tv_nsec))
        return isTooFar || isFurther ? tv_sec < 0 ? .min : .max : sum
    }

    init(nanoseconds: Int64) {
        let (seconds, rest) = nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
        self =
            rest < 0
            ? timespec(tv_sec: Int(seconds) - 1, tv_nsec: Int(rest) + 1_000_000_000)
            : timespec(tv_sec: Int(seconds), tv_nsec: Int(rest))
    }
}

/// The agreement of a node's clock with the database's. Changes are logged for the operator.
enum ClockAgreement: Sendable, Equatable {
    case agrees
    /// Worth correcting, without consequences: the node uses the database's time.
    case differs
    /// The purge is suspended.
    case isFarOff

    /// One second: more than NTP leaves, and below a noticeable difference.
    private static let negligible = Duration.seconds(1)

    init(difference: Duration) {
        switch abs(difference) {
        case ...Self.negligible: self = .agrees
        case ...DatabaseClock.tolerance: self = .differs
        default: self = .isFarOff
        }
    }
}

/// How well a node's clock agrees with the database's; told to the operator when it changes.
enum ClockAgreement: Sendable, Equatable {
    case agrees
    /// Worth mending, and of no consequence: the node goes by the database's clock.
    case differs
    /// Nothing is purged.
    case isFarOff

    /// A second: more than NTP ever leaves, and less than anybody would notice.
    private static let negligible = Duration.seconds(1)

    init(difference: Duration) {
        switch abs(difference) {
        case ...Self.negligible: self = .agrees
        case ...DatabaseClock.tolerance: self = .differs
        default: self = .isFarOff
        }
    }
}

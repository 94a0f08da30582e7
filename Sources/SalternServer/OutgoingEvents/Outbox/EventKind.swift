/// The kinds of events for services of the operator. The raw value is their public name.
public enum EventKind: String, Sendable, CaseIterable {
    case accountCreated = "account.created"
    case accountDeleted = "account.deleted"
    case accountLocked = "account.locked"
    case accountUnlocked = "account.unlocked"
    case planChanged = "plan.changed"
    case receiptStored = "receipt.stored"
    case sessionOpened = "session.opened"
    case sessionEnded = "session.ended"
    /// The account's items have changed. Such events may be lost.
    case changes

    /// The kinds of a destination that names none.
    public static var standard: [EventKind] { allCases.filter(\.isOrdered) }

    /// True if the events of an account arrive in their order.
    public var isOrdered: Bool {
        switch self {
        case .accountCreated, .accountDeleted, .accountLocked, .accountUnlocked, .planChanged, .receiptStored: true
        case .sessionOpened, .sessionEnded, .changes: false
        }
    }
}

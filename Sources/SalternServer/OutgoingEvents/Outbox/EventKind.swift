/// The kinds of events that services of the operator can get. The raw value is their public name.
public enum EventKind: String, Sendable, CaseIterable {
    case accountCreated = "account.created"
    case accountDeleted = "account.deleted"
    case accountLocked = "account.locked"
    case accountUnlocked = "account.unlocked"
    case planChanged = "plan.changed"
    case receiptStored = "receipt.stored"
    case sessionOpened = "session.opened"
    case sessionEnded = "session.ended"
    /// The account's items have changed. May be lost.
    case changes

    /// The kinds that a destination gets unless it asks for others.
    public static var standard: [EventKind] { allCases.filter(\.isOrdered) }

    /// Whether the events of an account arrive in their order.
    public var isOrdered: Bool {
        switch self {
        case .accountCreated, .accountDeleted, .accountLocked, .accountUnlocked, .planChanged, .receiptStored: true
        case .sessionOpened, .sessionEnded, .changes: false
        }
    }
}

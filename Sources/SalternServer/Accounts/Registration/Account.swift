internal import HTTPCore
internal import Postgres

/// An account that is stored.
public enum Account {}

/// Names an account.
public typealias AccountID = Identifier<Account>

/// Who may register.
public enum RegistrationMode: String, Sendable, CaseIterable {
    case open
    case invite
    case closed
}

extension AccountID {
    /// Whose the memory of a request of this account is.
    var memoryOwner: MemoryBudget.Owner { .account(uuid.high, uuid.low) }

    /// The account whose the memory is; nil when it is an address's.
    init?(memoryOwner: MemoryBudget.Owner) {
        guard case .account(let high, let low) = memoryOwner else { return nil }
        self.init(UUID(high: high, low: low))
    }
}

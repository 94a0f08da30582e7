internal import HTTPCore
internal import Postgres

/// An account. It serves as the type parameter of ``AccountID``.
public enum Account {}

/// Identifies an account.
public typealias AccountID = Identifier<Account>

/// Condition for registration: open to all, with an invite, or closed.
public enum RegistrationMode: String, Sendable, CaseIterable {
    case open
    case invite
    case closed
}

extension AccountID {
    /// The owner of the memory of this account's requests.
    var memoryOwner: MemoryBudget.Owner { .account(uuid.high, uuid.low) }

    /// Reads the account from an owner of memory. Nil if the owner is an address.
    init?(memoryOwner: MemoryBudget.Owner) {
        guard case .account(let high, let low) = memoryOwner else { return nil }
        self.init(UUID(high: high, low: low))
    }
}

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
    var memoryParty: MemoryBudget.Party { .account(uuid.high, uuid.low) }
}

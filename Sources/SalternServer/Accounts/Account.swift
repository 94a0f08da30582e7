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

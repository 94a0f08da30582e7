public import Postgres

/// An invite as its issuer lists it, without the code.
public struct Invite: Sendable, Equatable {
    public let id: InviteID
    public let createdAt: Timestamp
    public let expiresAt: Timestamp
    /// The plan of the registered account. Nil for the default plan.
    public let plan: String?
    public let note: String?
    public let usedAt: Timestamp?
    public let revokedAt: Timestamp?

    /// The state of an invite.
    public enum State: String, Sendable {
        case open
        case used
        case revoked
        case expired
    }

    /// Returns the state at `now`.
    public func state(at now: Timestamp) -> State {
        if usedAt != nil { return .used }
        if revokedAt != nil { return .revoked }
        return expiresAt <= now ? .expired : .open
    }
}

/// Identifies an invite to its issuer. It grants nothing.
public typealias InviteID = Identifier<Invite>

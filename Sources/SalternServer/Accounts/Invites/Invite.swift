public import Postgres

/// An invite as its maker sees it again: everything but the code.
public struct Invite: Sendable, Equatable {
    public let id: InviteID
    public let createdAt: Timestamp
    public let expiresAt: Timestamp
    /// The plan of the account that comes of it; nil for the default plan.
    public let plan: String?
    public let note: String?
    public let usedAt: Timestamp?
    public let revokedAt: Timestamp?

    /// What can still become of an invite.
    public enum State: String, Sendable {
        case open
        case used
        case revoked
        case expired
    }

    /// What has become of it by `now`.
    public func state(at now: Timestamp) -> State {
        if usedAt != nil { return .used }
        if revokedAt != nil { return .revoked }
        return expiresAt <= now ? .expired : .open
    }
}

/// Names an invite to its maker; it opens nothing.
public typealias InviteID = Identifier<Invite>

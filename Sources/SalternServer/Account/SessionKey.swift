internal import Postgres

/// A session as its rows are found.
struct SessionKey: Hashable, Sendable {
    let accountID: AccountID
    let tokenHash: TokenHash
}

/// When a session is live.
enum SessionLiveness {
    /// The condition that the session of an alias is live, and not one that a recovery has opened.
    /// - Parameters:
    ///   - now: A session that ended before is not live.
    ///   - idleSince: A session that was last used at or before it is not live.
    static func isLive<Root, Context>(
        _ alias: SQLFragment, at now: SQLTemplate<Root, Context>, idleSince: SQLTemplate<Root, Context>
    ) -> SQLTemplate<Root, Context> {
        "\(hasNotEnded(alias, at: now, idleSince: idleSince)) AND NOT \(alias).restricted"
    }

    /// The condition that the session of an alias has not ended, restricted or not.
    static func hasNotEnded<Root, Context>(
        _ alias: SQLFragment, at now: SQLTemplate<Root, Context>, idleSince: SQLTemplate<Root, Context>
    ) -> SQLTemplate<Root, Context> {
        "\(alias).expires_at > \(now) AND \(alias).last_used_at > \(idleSince)"
    }
}

internal import Postgres

/// The columns by which a session's row is found.
struct SessionKey: Hashable, Sendable {
    let accountID: AccountID
    let tokenHash: TokenHash
}

/// SQL conditions on a session's life.
enum SessionLiveness {
    /// The condition that the session of an alias is live and not restricted to a recovery.
    ///
    /// - Parameters:
    ///   - now: Sessions that expire at or before it are not live.
    ///   - idleSince: Sessions last used at or before it are not live.
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

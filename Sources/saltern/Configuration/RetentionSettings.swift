import SalternServer

/// What the server and `saltern purge` have to agree on.
extension Settings {
    /// How long sessions last.
    mutating func sessionPolicy() -> SessionPolicy {
        let range = Duration.seconds(1) ... .seconds(3_650 * 86_400)
        return SessionPolicy(
            idleTimeout: duration("SALTERN_SESSION_IDLE_TIMEOUT", in: range, default: .seconds(30 * 86_400)),
            lifetime: duration("SALTERN_SESSION_LIFETIME", in: range, default: .seconds(365 * 86_400)))
    }

    /// How long what nobody needs any more is kept.
    mutating func purgePolicy() -> PurgePolicy {
        PurgePolicy(
            tombstoneRetention: duration(
                "SALTERN_TOMBSTONE_RETENTION", in: .seconds(86_400) ... .seconds(3_650 * 86_400),
                default: .seconds(90 * 86_400)),
            eventRetention: duration(
                "SALTERN_EVENT_RETENTION", in: .seconds(86_400) ... .seconds(3_650 * 86_400),
                default: .seconds(400 * 86_400)))
    }
}

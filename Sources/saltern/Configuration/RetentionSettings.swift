import CommandLineKit
import SalternServer

extension SessionPolicy {
    /// Reads the settings for a command that needs no others.
    /// - Throws: ``CommandFailure`` with every problem.
    init(_ console: Console) throws(CommandFailure) {
        var settings = Settings(console.environment)
        self = settings.sessionPolicy()
        try settings.finish()
    }
}

/// Settings that the server and `saltern purge` share.
extension Settings {
    /// Reads the duration of sessions.
    mutating func sessionPolicy() -> SessionPolicy {
        let standard = SessionPolicy()
        // A session in use must not count as idle.
        let shortest = standard.touchInterval + .seconds(1)
        let idle = duration(
            "SALTERN_SESSION_IDLE_TIMEOUT", in: shortest...Self.longest, default: standard.idleTimeout)
        return SessionPolicy(
            idleTimeout: idle,
            lifetime: duration(
                "SALTERN_SESSION_LIFETIME", in: idle...Self.longest, default: max(standard.lifetime, idle)))
    }

    /// Reads the retention of data that is no longer needed.
    mutating func purgePolicy() -> PurgePolicy {
        let range = Duration.seconds(86_400)...Self.longest
        return PurgePolicy(
            tombstoneRetention: duration("SALTERN_TOMBSTONE_RETENTION", in: range, default: .seconds(90 * 86_400)),
            eventRetention: duration("SALTERN_EVENT_RETENTION", in: range, default: .seconds(400 * 86_400)))
    }

    private static let longest = Duration.seconds(3_650 * 86_400)
}

internal import Postgres

/// A session. It serves as the type parameter of ``SessionID``.
enum Session {}

/// Identifies a session to its owner. It grants nothing.
typealias SessionID = Identifier<Session>

/// The life of sessions.
public struct SessionPolicy: Sendable, Equatable {
    /// A session without use for this time ends.
    public var idleTimeout: Duration
    /// A session ends this long after its start, even if it is used.
    public var lifetime: Duration
    /// The minimum interval between two records of a session's use.
    public var touchInterval: Duration

    public init(
        idleTimeout: Duration = .seconds(30 * 86_400), lifetime: Duration = .seconds(365 * 86_400),
        touchInterval: Duration = .seconds(60)
    ) {
        self.idleTimeout = idleTimeout
        self.lifetime = lifetime
        self.touchInterval = touchInterval
    }

    /// The errors in the policy, one sentence each.
    var findings: [String] {
        var findings: [String] = []
        if touchInterval < .zero {
            findings.append("The interval of recording a session's last use must not be negative.")
        }
        if idleTimeout <= touchInterval {
            findings.append("The sessions' idle timeout must be longer than the interval of recording their last use.")
        }
        if lifetime < idleTimeout {
            findings.append("The sessions' lifetime must not be shorter than their idle timeout.")
        }
        return findings
    }
}

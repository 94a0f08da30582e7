internal import Postgres

/// A session that is stored.
enum Session {}

/// Names a session to the person it belongs to; it opens nothing.
typealias SessionID = Identifier<Session>

/// How long sessions last.
public struct SessionPolicy: Sendable, Equatable {
    /// A session that is not used for so long ends.
    public var idleTimeout: Duration
    /// A session ends so long after it began, used or not.
    public var lifetime: Duration
    /// Last use is recorded at most once in this time.
    public var touchInterval: Duration

    public init(
        idleTimeout: Duration = .seconds(30 * 86_400), lifetime: Duration = .seconds(365 * 86_400),
        touchInterval: Duration = .seconds(60)
    ) {
        self.idleTimeout = idleTimeout
        self.lifetime = lifetime
        self.touchInterval = touchInterval
    }

    /// What is wrong with the policy, a sentence each.
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

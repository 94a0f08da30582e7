internal import Postgres

/// The kind of secret that an attempt checked. All kinds share the counters that delay the next attempt; the owner's
/// security log separates them.
enum FailureKind: Int, Sendable, CaseIterable {
    /// The password key of a log-in.
    case passwordKey
    /// The one-time or recovery code that a log-in also requires.
    case secondFactor
    /// The key of a recovery.
    case recoveryKey
    /// The present key in a request that requires it besides the session.
    case currentKey
    /// The code that confirms a new second factor.
    case confirmation

    /// The kind of event in the security log.
    var event: SecurityEvent.Kind {
        switch self {
        case .passwordKey: .failedLogins
        case .secondFactor: .secondFactorFailed
        case .recoveryKey: .failedRecoveries
        case .currentKey: .failedCurrentKeys
        case .confirmation: .failedConfirmations
        }
    }
}

/// The count of failures of one kind.
struct FailureTally: Sendable, Equatable {
    let kind: FailureKind
    var count: Int64
    /// The time of the first one.
    var since: Timestamp
    /// The time of the latest one.
    var latest: Timestamp

    /// Adds the failures of several counters, and returns a tally for each kind with failures.
    static func sum(_ tallies: [FailureTally]) -> [FailureTally] {
        FailureKind.allCases.compactMap { kind in
            let same = tallies.filter { $0.kind == kind }
            guard var sum = same.first else { return nil }
            for tally in same.dropFirst() {
                sum.count += tally.count
                sum.since = min(sum.since, tally.since)
                sum.latest = max(sum.latest, tally.latest)
            }
            return sum
        }
    }
}

internal import Postgres

/// Which secret was guessed at. All kinds share the counters that delay the next attempt; the owner's log tells them
/// apart.
enum FailureKind: Int, Sendable, CaseIterable {
    /// The password key of a log-in.
    case passwordKey
    /// The one-time or recovery code that a log-in needs besides.
    case secondFactor
    /// The key of a recovery.
    case recoveryKey
    /// The present key that a dangerous call carries.
    case currentKey
    /// The code that shall confirm a new second factor.
    case confirmation

    /// What the security log calls failures of the kind.
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

/// Failures of one kind.
struct FailureTally: Sendable, Equatable {
    let kind: FailureKind
    var count: Int64
    /// The first.
    var since: Timestamp
    /// The latest.
    var latest: Timestamp

    /// Adds up the failures of many counters; a tally for each kind that there is.
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

internal import Cryptography
internal import Postgres

/// The delays after consecutive failures.
///
/// There is deliberately no limit for a day, with which an attacker could lock the owner out. In the long run
/// ``longestDelay`` permits one attempt a minute at each counter. An account has ``KnownDevice/slotCount`` + 2 counters
/// (``AttemptCounter``), so the sum is 18 attempts a minute, 26,000 a day.
enum AttemptPolicy {
    /// Consecutive failures without a delay.
    static let freeFailures = 4
    /// The longest delay. The owner with the right key never waits longer.
    static let longestDelay = Duration.seconds(60)
    /// The tolerated difference between two nodes' copies of the database's clock.
    static let clockSlack = Duration.seconds(5)
    /// A streak ends if its last failure is this old.
    static let memory = Duration.seconds(86_400)
    /// Rows without a new failure for this time are removed.
    static let retention = Duration.seconds(30 * 86_400)

    /// Returns the delay after consecutive failures: one second from the fifth, doubled with each further one, at most
    /// ``longestDelay``.
    static func delay(afterFailures failures: Int) -> Duration {
        let doublings = failures - freeFailures - 1
        guard doublings >= 0 else { return .zero }
        // With at most 30 doublings the shift stays within an integer.
        return min(.seconds(1 << min(doublings, 30)), longestDelay)
    }

    /// Returns the latest valid end of a block. A later one was set by a wrong clock and is ignored.
    static func latestEnd(at now: Timestamp) -> Timestamp { now + longestDelay + clockSlack }

    /// Returns the remaining time of a block. Nil if it is over or invalid.
    static func wait(until end: Timestamp, at now: Timestamp) -> Duration? {
        guard end > now, end <= latestEnd(at: now) else { return nil }
        return min(end - now, longestDelay)
    }

    /// Returns the end of the block after the first consecutive failure, the second, and so on. The last value holds
    /// for all further failures.
    static func blocks(failingAt now: Timestamp) -> [Timestamp] {
        var delays = [delay(afterFailures: 1)]
        while delays[delays.count - 1] < longestDelay { delays.append(delay(afterFailures: delays.count + 1)) }
        return delays.map { now + $0 }
    }
}

/// The keyed hash of a userid whose failures are counted, registered or not.
///
/// A hash, because people type passwords into the userid's field: the typed text is stored nowhere.
struct AttemptSubject: StoredDigest, PostgresArrayElement {
    let digest: SHA256Digest
}

/// One of a userid's counters. It has at most eighteen at a time: its own, one for each of the account's sixteen slots,
/// and one that devices of the previous generation share.
struct AttemptCounter: Sendable, Hashable {
    let subject: AttemptSubject
    let place: AttemptPlace
}

/// The counter among those of a userid: the keyed hash of an account's slot and a generation.
struct AttemptPlace: StoredDigest, PostgresArrayElement {
    let digest: SHA256Digest

    /// The counter of attempts without a valid device token.
    static let stranger = AttemptPlace(.zero)

    /// Draws a place without failures.
    static func random() -> AttemptPlace { AttemptPlace(SHA256.hash(SecureRandom.bytes(SHA256Digest.byteCount))) }
}

/// Derives subjects and counters under a key from the installation's secret, equal on all nodes.
struct AttemptSubjects: Sendable {
    private let key: HMACSHA256.Key

    init(secret: DecoySecret) {
        let label = Array("saltern failed attempts".utf8)
        key = HMACSHA256.Key(HMACSHA256.authenticationCode(for: label, using: secret.bytes))
    }

    /// Returns the subject of a userid's failures.
    func userid(_ userid: Userid) -> AttemptSubject { AttemptSubject(code("userid", Array(userid.string.utf8))) }

    /// Returns the counter of attempts with a device token of the present generation.
    func slot(of device: KnownDevice) -> AttemptPlace { AttemptPlace(code("slot", device.identity)) }

    /// Returns the counter of attempts with any device token of the previous generation.
    func generation(of device: KnownDevice) -> AttemptPlace {
        AttemptPlace(code("generation", device.generationIdentity))
    }

    private func code(_ kind: String, _ name: [UInt8]) -> SHA256Digest {
        key.authenticationCode(for: Array(kind.utf8) + [0] + name)
    }
}

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

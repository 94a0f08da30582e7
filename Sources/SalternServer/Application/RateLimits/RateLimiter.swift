public import HTTPCore
internal import Synchronization

/// Token buckets for client addresses, shared by all loops of a node. An IPv6 client counts by its /64.
///
/// Memory (65,536 buckets) and time for each request are bounded for any number of addresses.
public final class RateLimiter: Sendable {
    /// A part of the buckets under a lock of its own, so that loops rarely contend.
    private final class Stripe: Sendable {
        let table = Mutex(BucketTable())
    }

    /// A ``RateLimit`` in nanoseconds.
    private struct Pace {
        /// The interval between two tokens.
        let interval: Int64
        /// The largest distance from full at which a bucket still has a token.
        let tolerance: Int64

        init(_ limit: RateLimit) {
            interval = Int64(1_000_000_000 / limit.perSecond)
            tolerance = interval * Int64(limit.burst - 1)
        }
    }

    private let paces: [Pace?]
    private let stripes: [Stripe]
    private let refusals: [Counter]
    private let time: @Sendable () -> Duration

    private final class Counter: Sendable { let value = Atomic<Int>(0) }

    /// - Parameters:
    ///   - limits: Must have no ``RateLimits/findings``.
    ///   - time: The time since any fixed moment.
    public init(_ limits: RateLimits, time: (@Sendable () -> Duration)? = nil) {
        paces = RateClass.allCases.map { limits.limits[$0].map(Pace.init) }
        stripes = (0..<64).map { _ in Stripe() }
        refusals = RateClass.allCases.map { _ in Counter() }
        let start = ContinuousClock.now
        self.time = time ?? { ContinuousClock.now - start }
    }

    /// Takes a token of the client's bucket.
    ///
    /// - Returns: Nil if the bucket had a token, else the error to return, which is counted.
    @discardableResult
    public func take(_ client: ClientAddress, _ rateClass: RateClass) -> RateLimited? {
        ask(client, rateClass, taking: true)
    }

    /// Returns the error if the client's bucket has no token left. It takes no token.
    public func refusal(_ client: ClientAddress, _ rateClass: RateClass) -> RateLimited? {
        ask(client, rateClass, taking: false)
    }

    /// Returns true if the client's bucket has no token left.
    public func isExhausted(_ client: ClientAddress, _ rateClass: RateClass) -> Bool {
        refusal(client, rateClass) != nil
    }

    /// The number of rejected requests of each class since the start.
    public var refused: [(rateClass: RateClass, count: Int)] {
        RateClass.allCases.map { ($0, refusals[$0.index].value.load(ordering: .relaxed)) }
    }

    /// The number of allocated buckets.
    package var bucketCount: Int { stripes.reduce(0) { count, stripe in count + stripe.table.withLock(\.count) } }

    private func ask(_ client: ClientAddress, _ rateClass: RateClass, taking: Bool) -> RateLimited? {
        guard let pace = paces[rateClass.index] else { return nil }
        let key = BucketTable.Key(network: client.ip.network, rateClass: UInt8(rateClass.index))
        let now = nanoseconds
        let wait = stripes[key.hashValue & (stripes.count - 1)].table.withLock { table in
            let fullAt = max(table.fullAt(key), now)
            let wait = fullAt - now - pace.tolerance
            if taking, wait <= 0 { table.set(key, fullAt: fullAt + pace.interval) }
            return wait
        }
        if wait <= 0 { return nil }
        refusals[rateClass.index].value.add(1, ordering: .relaxed)
        return RateLimited(wait: .nanoseconds(wait))
    }

    private var nanoseconds: Int64 {
        let (seconds, attoseconds) = time().components
        return seconds * 1_000_000_000 + attoseconds / 1_000_000_000
    }
}

extension RateClass {
    /// The index among all classes.
    fileprivate var index: Int {
        switch self {
        case .login: 0
        case .registration: 1
        case .lookup: 2
        case .account: 3
        case .share: 4
        case .shareMiss: 5
        case .anonymousShare: 6
        }
    }
}

/// The error of a client address that exceeds a rate limit.
public struct RateLimited: ProblemConvertible, Equatable {
    /// The time until the next token.
    public let wait: Duration

    public var problem: Problem {
        Problem(
            .tooManyRequests, "rate_limited",
            detail: "Too many requests come from this address. Send the request again after Retry-After.",
            responseFields: ["Retry-After": RetryAfter.seconds(wait)])
    }
}

/// The value of `Retry-After` (RFC 9110 §10.2.3).
enum RetryAfter {
    /// Returns whole seconds, rounded up, at least one.
    static func seconds(_ wait: Duration) -> String {
        let (seconds, attoseconds) = wait.components
        return String(max(seconds + (attoseconds > 0 ? 1 : 0), 1))
    }
}

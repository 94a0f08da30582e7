public import HTTPCore
internal import Synchronization

/// Token buckets for client addresses, an IPv6 client counted by its /64: one limiter for all loops of a node.
///
/// Its memory is bounded (65,536 buckets), and so is the work of a question, whatever addresses clients have.
public final class RateLimiter: Sendable {
    /// A share of the buckets with a lock of its own, so that loops seldom meet.
    private final class Stripe: Sendable {
        let table = Mutex(BucketTable())
    }

    /// A ``RateLimit`` in nanoseconds.
    private struct Pace {
        /// From one token to the next.
        let interval: Int64
        /// How far from full a bucket may be and still have a token.
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
    ///   - limits: Without ``RateLimits/findings``.
    ///   - time: The time since any fixed moment.
    public init(_ limits: RateLimits, time: (@Sendable () -> Duration)? = nil) {
        paces = RateClass.allCases.map { limits.limits[$0].map(Pace.init) }
        stripes = (0..<64).map { _ in Stripe() }
        refusals = RateClass.allCases.map { _ in Counter() }
        let start = ContinuousClock.now
        self.time = time ?? { ContinuousClock.now - start }
    }

    /// Takes a token of the client's bucket.
    /// - Returns: Nil when there was one, else what to answer; the refusal is counted.
    @discardableResult
    public func take(_ client: ClientAddress, _ rateClass: RateClass) -> RateLimited? {
        ask(client, rateClass, taking: true)
    }

    /// What to answer when the client's bucket has no token left; nil when there is one, which stays there.
    public func refusal(_ client: ClientAddress, _ rateClass: RateClass) -> RateLimited? {
        ask(client, rateClass, taking: false)
    }

    /// Whether the client's bucket has no token left.
    public func isExhausted(_ client: ClientAddress, _ rateClass: RateClass) -> Bool {
        refusal(client, rateClass) != nil
    }

    /// How many requests of each class were refused since the start.
    public var refused: [(rateClass: RateClass, count: Int)] {
        RateClass.allCases.map { ($0, refusals[$0.index].value.load(ordering: .relaxed)) }
    }

    /// How many buckets there is room for now.
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
    /// The place among all classes.
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

/// A client address asks too often.
public struct RateLimited: ProblemConvertible, Equatable {
    /// Until there is a token again.
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
    /// Whole seconds, rounded up, and one at least.
    static func seconds(_ wait: Duration) -> String {
        let (seconds, attoseconds) = wait.components
        return String(max(seconds + (attoseconds > 0 ? 1 : 0), 1))
    }
}

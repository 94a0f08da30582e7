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
        case .token: 7
        case .service: 8
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

/// A fixed number of token buckets, each found in a fixed number of steps. It is one stripe of a ``RateLimiter``.
///
/// A bucket is one number, the time at which it will be full (generic cell rate algorithm), so full buckets need no
/// entry. The table is set-associative, like a processor's cache. A key has eight entries, chosen by a hash that is
/// seeded in each process. If all are taken, the fullest bucket is evicted.
///
/// A client with enough addresses to evict buckets gains no more tokens than fresh addresses have anyway. The emptiest
/// buckets, those of the most frequent senders, are evicted last.
struct BucketTable {
    struct Key: Hashable {
        let network: UInt64
        let rateClass: UInt8
    }

    private struct Bucket {
        var key = Key(network: 0, rateClass: .max)
        /// Time in nanoseconds of the limiter's clock.
        var fullAt: Int64 = .min
    }

    /// The number of buckets in the table.
    static let capacity = 1_024
    private static let places = 8

    /// Allocated with the first count.
    private var buckets: [Bucket] = []

    /// The number of allocated buckets.
    var count: Int { buckets.count }

    /// Returns the time at which the bucket will be full. It is in the past for full and for absent buckets.
    func fullAt(_ key: Key) -> Int64 {
        guard !buckets.isEmpty else { return .min }
        for place in Self.range(key) where buckets[place].key == key { return buckets[place].fullAt }
        return .min
    }

    /// Sets the time at which the bucket will be full.
    mutating func set(_ key: Key, fullAt: Int64) {
        if buckets.isEmpty { buckets = Array(repeating: Bucket(), count: Self.capacity) }
        let range = Self.range(key)
        var chosen = range.lowerBound
        for place in range {
            if buckets[place].key == key {
                chosen = place
                break
            }
            if buckets[place].fullAt < buckets[chosen].fullAt { chosen = place }
        }
        buckets[chosen] = Bucket(key: key, fullAt: fullAt)
    }

    private static func range(_ key: Key) -> Range<Int> {
        var hasher = Hasher()
        hasher.combine(key)
        // The low bits choose the stripe.
        let set = Int(UInt(bitPattern: hasher.finalize()) >> 32) % (capacity / places)
        return (set * places)..<(set * places + places)
    }
}

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

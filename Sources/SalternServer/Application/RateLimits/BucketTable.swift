/// The token buckets of one stripe: a fixed number of them, found in a fixed number of steps.
///
/// A bucket is one number, the moment at which it will be full again (the generic cell rate algorithm), so a full one
/// need not be kept. The table is set-associative, as a processor's cache is: a key has eight places, chosen by a hash
/// that is seeded anew in every process, and where all are taken the fullest bucket makes room. Whoever has so many
/// addresses that buckets which are not full are forgotten gains nothing that a fresh address does not have anyway, and
/// the emptiest buckets, those of whoever asks too much, are forgotten last.
struct BucketTable {
    struct Key: Hashable {
        let network: UInt64
        let rateClass: UInt8
    }

    private struct Bucket {
        var key = Key(network: 0, rateClass: .max)
        /// In nanoseconds of the limiter's clock.
        var fullAt: Int64 = .min
    }

    /// How many buckets the table has.
    static let capacity = 1_024
    private static let places = 8

    /// Empty until something is counted.
    private var buckets: [Bucket] = []

    /// How many buckets there is room for.
    var count: Int { buckets.count }

    /// When the bucket will be full again; in the past when it is full, as one is that the table does not have.
    func fullAt(_ key: Key) -> Int64 {
        guard !buckets.isEmpty else { return .min }
        for place in Self.range(key) where buckets[place].key == key { return buckets[place].fullAt }
        return .min
    }

    /// Sets when the bucket will be full again.
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

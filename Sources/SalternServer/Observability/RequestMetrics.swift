internal import HTTPCore
internal import Synchronization

/// Counts finished requests by route and status class, and their durations. One for each loop.
public final class RequestMetrics: Sendable {
    /// Upper bounds of the duration buckets, in microseconds.
    static let bucketBounds: [Int64] = [
        250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 1_000_000, 10_000_000,
    ]

    /// The counts of one route.
    struct RouteCounts: Sendable {
        /// Requests by ``RequestRecord/statusClass``, from 1 to 5.
        var byStatusClass = [Int](repeating: 0, count: 5)
        /// Requests by bucket. The last bucket is unbounded.
        var byBucket = [Int](repeating: 0, count: RequestMetrics.bucketBounds.count + 1)
        var totalMicroseconds: Int64 = 0
        /// Rejected requests by the problem's code.
        var byProblem: [String: Int] = [:]

        mutating func count(_ statusClass: Int, _ bucket: Int, _ microseconds: Int64, _ problem: String?) {
            if let problem { byProblem[problem, default: 0] += 1 }
            byStatusClass[statusClass] += 1
            byBucket[bucket] += 1
            totalMicroseconds += microseconds
        }

        mutating func add(_ other: RouteCounts) {
            for index in byStatusClass.indices { byStatusClass[index] += other.byStatusClass[index] }
            for index in byBucket.indices { byBucket[index] += other.byBucket[index] }
            totalMicroseconds += other.totalMicroseconds
            byProblem.merge(other.byProblem) { $0 + $1 }
        }
    }

    private let counts = Mutex<[String: RouteCounts]>([:])
    private let ignored = Atomic<Int>(0)

    public init() {}

    /// Counts one request. Routes are templates, so their number is fixed.
    public func count(_ record: RequestRecord) {
        let (seconds, attoseconds) = record.duration.components
        let microseconds = seconds * 1_000_000 + attoseconds / 1_000_000_000_000
        let bucket = Self.bucketBounds.firstIndex { microseconds <= $0 } ?? Self.bucketBounds.count
        counts.withLock { counts in
            counts[record.route, default: RouteCounts()].count(
                record.statusClass - 1, bucket, microseconds, record.problemCode)
        }
    }

    /// The number of requests whose `X-Forwarded-For` was ignored because their peer is no trusted proxy.
    public var ignoredForwards: Int { ignored.load(ordering: .relaxed) }

    /// Counts a request whose `X-Forwarded-For` was ignored.
    func noteIgnoredForward() { ignored.add(1, ordering: .relaxed) }

    func snapshot() -> [String: RouteCounts] { counts.withLock { $0 } }
}

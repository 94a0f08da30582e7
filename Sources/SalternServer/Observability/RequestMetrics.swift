public import HTTPCore
public import Postgres
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

/// The data of a finished request for log and metrics.
public struct RequestRecord: Sendable {
    public var requestID: RequestID
    /// The trace in the request's `traceparent`.
    public var trace: TraceParent?
    /// Method and route template, for example `PUT /v1/items/{id}`, or `unmatched` without a route. Never the path.
    public var route: String
    public var status: HTTPStatus
    public var duration: Duration
    /// The account of the request's session.
    public var accountID: Postgres.UUID?
    /// The stable code of the returned problem.
    public var problemCode: String?

    /// The first digit of the status, where 5 means a failure of the server. 501 and 505 count as 4, because any client
    /// can cause them with optional features of HTTP.
    var statusClass: Int {
        status == .notImplemented || status == .httpVersionNotSupported ? 4 : Int(status.code) / 100
    }

    public init(
        requestID: RequestID, trace: TraceParent?, route: String, status: HTTPStatus, duration: Duration,
        accountID: Postgres.UUID? = nil, problemCode: String? = nil
    ) {
        self.requestID = requestID
        self.trace = trace
        self.route = route
        self.status = status
        self.duration = duration
        self.accountID = accountID
        self.problemCode = problemCode
    }
}

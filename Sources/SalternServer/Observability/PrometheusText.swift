/// Writes metrics in Prometheus' text format (https://prometheus.io/docs/instrumenting/exposition_formats/, version
/// 0.0.4).
public struct PrometheusText: Sendable {
    /// The `Content-Type` of the format.
    public static let contentType = "text/plain; version=0.0.4; charset=utf-8"

    /// The type of a metric.
    public enum Kind: String, Sendable { case counter, gauge, histogram }

    private var text = ""

    public init() {}

    /// The document.
    public var bytes: [UInt8] { Array(text.utf8) }

    /// Begins a metric. Its samples follow.
    public mutating func metric(_ name: String, _ kind: Kind, _ help: String) {
        text += "# HELP \(name) \(help)\n# TYPE \(name) \(kind.rawValue)\n"
    }

    /// Writes one sample. Labels are fixed names and route templates; quotes and backslashes are escaped.
    public mutating func sample(_ name: String, labels: KeyValuePairs<String, String> = [:], _ value: some Numeric) {
        text += name
        if !labels.isEmpty {
            text += "{"
            text += labels.map { "\($0.key)=\"\(Self.escaped($0.value))\"" }.joined(separator: ",")
            text += "}"
        }
        text += " \(value)\n"
    }

    /// Writes a metric that has one sample.
    public mutating func single(_ name: String, _ kind: Kind, _ help: String, _ value: some Numeric) {
        metric(name, kind, help)
        sample(name, value)
    }

    /// Writes requests and durations, summed over the loops.
    public mutating func requests(_ loops: [RequestMetrics]) {
        var routes: [String: RequestMetrics.RouteCounts] = [:]
        for loop in loops {
            for (route, counts) in loop.snapshot() { routes[route, default: .init()].add(counts) }
        }
        let sorted = routes.sorted { $0.key < $1.key }
        metric("saltern_http_requests_total", .counter, "Finished requests by route template and class of status.")
        for (route, counts) in sorted {
            for (index, count) in counts.byStatusClass.enumerated() where count > 0 {
                sample("saltern_http_requests_total", labels: ["route": route, "status": "\(index + 1)xx"], count)
            }
        }
        metric("saltern_http_problems_total", .counter, "Rejected requests by route template and problem code.")
        for (route, counts) in sorted {
            for (code, count) in counts.byProblem.sorted(by: { $0.key < $1.key }) {
                sample("saltern_http_problems_total", labels: ["route": route, "code": code], count)
            }
        }
        let name = "saltern_http_request_duration_seconds"
        metric(name, .histogram, "Time from the parsed head to the reply.")
        for (route, counts) in sorted {
            var cumulative = 0
            for (index, bound) in RequestMetrics.bucketBounds.enumerated() {
                cumulative += counts.byBucket[index]
                sample("\(name)_bucket", labels: ["route": route, "le": "\(Double(bound) / 1_000_000)"], cumulative)
            }
            cumulative += counts.byBucket[RequestMetrics.bucketBounds.count]
            sample("\(name)_bucket", labels: ["route": route, "le": "+Inf"], cumulative)
            sample("\(name)_sum", labels: ["route": route], Double(counts.totalMicroseconds) / 1_000_000)
            sample("\(name)_count", labels: ["route": route], cumulative)
        }
    }

    private static func escaped(_ value: String) -> String {
        var result = ""
        for character in value {
            switch character {
            case "\\": result += "\\\\"
            case "\"": result += "\\\""
            case "\n": result += "\\n"
            default: result.append(character)
            }
        }
        return result
    }
}

import Glibc
import HTTPCore
import HTTPServer
import SalternServer
import Synchronization

/// Answers `GET /metrics` on the loopback listener, and nothing else.
struct MetricsResponder: Responder {
    let requests: [RequestMetrics]
    let server: HTTPServer
    let limiter: RateLimiter
    let clock: DatabaseClock

    func admit(_ head: RequestHead, from client: ClientAddress) -> Admission {
        guard head.path == "/metrics" else { return .refuse(Problem.notFound.response()) }
        guard head.method == .get || head.method == .head else {
            return .refuse(Problem.methodNotAllowed(allowed: [.get, .head]).response())
        }
        return .accept(
            Plan(bodyLimit: 0, handlerDeadline: .seconds(10)) { [self] in
                Response(
                    status: .ok, fields: ["Content-Type": PrometheusText.contentType, "Cache-Control": "no-store"],
                    body: .bytes(WipedBytes(text())))
            })
    }

    func refusal(_ refusal: Refusal, from client: ClientAddress) -> Response { refusal.problem.response() }

    private func text() -> [UInt8] {
        var text = PrometheusText()
        text.requests(requests)
        text.single("saltern_connections", .gauge, "Connections that are open.", server.connectionCount)
        let counters = server.statistics
        text.single(
            "saltern_connections_accepted_total", .counter, "Connections taken on.",
            counters.acceptedConnections.load(ordering: .relaxed))
        text.single(
            "saltern_connections_dropped_total", .counter, "Connections closed at once because a limit was reached.",
            counters.droppedConnections.load(ordering: .relaxed))
        text.single(
            "saltern_tls_handshakes_total", .counter, "TLS handshakes completed.",
            counters.completedHandshakes.load(ordering: .relaxed))
        text.single(
            "saltern_tls_handshakes_failed_total", .counter, "TLS handshakes that failed.",
            counters.failedHandshakes.load(ordering: .relaxed))
        let name = "saltern_rate_limited_requests_total"
        text.metric(name, .counter, "Requests refused because of their client address, by class.")
        for (rateClass, count) in limiter.refused { text.sample(name, labels: ["class": rateClass.rawValue], count) }
        if let difference = clock.difference {
            text.single(
                "saltern_clock_difference_seconds", .gauge, "How far this machine's clock is ahead of the database's.",
                difference / .seconds(1))
        }
        var usage = rusage()
        getrusage(CInt(RUSAGE_SELF.rawValue), &usage)
        let seconds = Double(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec)
        let microseconds = Double(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec)
        text.single("process_cpu_seconds_total", .counter, "CPU time used.", seconds + microseconds / 1_000_000)
        if let resident = ResidentMemory.bytes {
            text.single("process_resident_memory_bytes", .gauge, "Resident memory.", resident)
        }
        return text.bytes
    }
}

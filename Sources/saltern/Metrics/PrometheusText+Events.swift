import SalternServer

extension PrometheusText {
    /// Outgoing events: attempts of this node, and the backlog of all nodes.
    mutating func outgoingEvents(_ counters: DeliveryCounters, _ outbox: Outbox, _ backlog: EventBacklog?) {
        let attempts = "saltern_event_attempts_total"
        metric(attempts, .counter, "Attempts to deliver outgoing events, by result.")
        for (label, count) in counters.attempts {
            sample(attempts, labels: ["destination": label.destination, "result": label.result], count)
        }
        single(
            "saltern_event_changes_dropped_total", .counter, "Changes of items that were not reported to destinations.",
            outbox.droppedChanges)
        single(
            "saltern_event_sessions_dropped_total", .counter,
            "Events of sessions that were dropped, because too many of their account waited.",
            outbox.droppedSessionEvents)
        guard let parts = backlog?.parts else { return }
        func write(_ name: String, _ help: String, _ value: (EventBacklog.Part) -> Double) {
            metric(name, .gauge, help)
            for part in parts { sample(name, labels: ["destination": part.destination], value(part)) }
        }
        write("saltern_event_backlog", "Outgoing events that wait; 1000 when there are so many or more.") {
            Double($0.waiting)
        }
        write("saltern_event_oldest_seconds", "Age of the oldest outgoing event that waits.") { $0.age / .seconds(1) }
        write("saltern_event_parked", "Outgoing events that were given up; 1000 when there are so many or more.") {
            Double($0.parked)
        }
        write("saltern_event_destination_disabled", "Whether the receiver has answered 410.") { $0.isDisabled ? 1 : 0 }
        let open = counters.openBreakers
        write("saltern_event_breaker_open", "Whether this node attempts the destination only now and then.") {
            open.contains($0.destination) ? 1 : 0
        }
    }
}

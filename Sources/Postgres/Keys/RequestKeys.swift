internal import Synchronization

/// The table of keys that are under way: one for the clients of a process, whose loops share it.
public final class RequestKeys: Sendable {
    private let table = Mutex(KeyTable<KeyWaiter>())

    public init() {}

    /// How many keys are held and how many requests wait for one.
    var counts: (held: Int, waiting: Int) { table.withLock { ($0.heldCount, $0.waiterCount) } }

    /// Who waits for a key, in all of the process, and has waited.
    public var keyWaits: PostgresStatistics.KeyWaitCounts { table.withLock { $0.keyWaits } }

    /// Holds `key`, unless somebody does.
    func tryHold(_ key: RequestKey, now: ContinuousClock.Instant) -> KeyTable<KeyWaiter>.Route? {
        table.withLock { table in
            guard case .held(let route) = table.acquire(key, waiter: nil, now: now, deadline: now) else { return nil }
            return route
        }
    }

    /// Holds `key` when its turn has come.
    /// - Parameter batchOwner: Requests of the same one may hold the key together.
    func hold(
        _ key: RequestKey, batchOwner: ObjectIdentifier? = nil, until deadline: ContinuousClock.Instant
    ) async throws(PostgresError) -> KeyTable<KeyWaiter>.Route {
        let waiter = KeyWaiter()
        let outcome = await withTaskCancellationHandler {
            await withUnsafeContinuation { continuation in
                let outcome: KeyWaiter.Outcome? = table.withLock { table in
                    if waiter.isCancelled { return .cancelled }
                    switch table.acquire(key, batchOwner: batchOwner, waiter: waiter, now: .now, deadline: deadline) {
                    case .held(let route): return .held(route)
                    case .queueFull: return .queueFull
                    case .refused: return .refused
                    case .wait(let ticket):
                        waiter.ticket = ticket
                        waiter.continuation = continuation
                        return nil
                    }
                }
                if let outcome { continuation.resume(returning: outcome) }
            }
        } onCancel: {
            let continuation = table.withLock { table in
                waiter.isCancelled = true
                return waiter.ticket.flatMap { table.cancel($0) }?.continuation.take()
            }
            continuation?.resume(returning: .cancelled)
        }
        switch outcome {
        case .held(let route): return route
        case .queueFull: throw .queueFull
        case .refused: throw .unavailable(retryAfter: .seconds(1))
        case .cancelled: throw .cancelled
        }
    }

    /// Hands `key` to those whose turn it is; their tasks go on on their own loop.
    func release(_ key: RequestKey) {
        let next = table.withLock { table in
            table.release(key, now: .now).map { ($0.waiter.continuation.take(), $0.route) }
        }
        for (continuation, route) in next { continuation?.resume(returning: .held(route)) }
    }

    /// A request of `key` met a lock on a shared connection.
    func mark(_ key: RequestKey) { table.withLock { $0.mark(key, now: .now) } }

    /// Refuses those who have waited too long.
    func expire(now: ContinuousClock.Instant) {
        while let continuation = table.withLock({ $0.expire(now: now)?.continuation.take() }) {
            continuation.resume(returning: .refused)
        }
    }
}

/// A task that waits for a key.
// Safe to share: touched while the table's lock is held only.
final class KeyWaiter: @unchecked Sendable {
    enum Outcome: Sendable {
        case held(KeyTable<KeyWaiter>.Route)
        case queueFull, refused, cancelled
    }

    var continuation: UnsafeContinuation<Outcome, Never>?
    var ticket: KeyTable<KeyWaiter>.Ticket?
    var isCancelled = false
}

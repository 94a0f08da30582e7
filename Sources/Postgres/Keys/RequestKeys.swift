internal import Synchronization

/// Identifies the rows that a request may lock.
///
/// Requests of one key never use two connections of a process at the same time. So a lock of one account or share
/// blocks at most one connection. Two subjects that share a key by chance merely wait for each other.
///
/// Keys that differ only in their sender are equal. The senders of one key are served round robin.
public struct RequestKey: Hashable, Sendable {
    /// The kind of subject that a key identifies.
    public enum Kind: UInt8, Sendable {
        case account, vault, vaultLog, share, attemptSubject, userid, invite, session
        /// A client's address or network, for long leases.
        case address
        /// A type of statement, for requests without a key that have met a lock.
        case statement
    }

    private let kind: Kind
    private let high: UInt64
    private let low: UInt64
    /// The sender of the request, for a subject with several senders.
    let sender: UUID?

    /// Makes the key of a subject with a UUID.
    /// - Parameter sender: The sender of the request, for a subject with several senders.
    public init(_ kind: Kind, _ id: UUID, of sender: UUID? = nil) {
        self.kind = kind
        self.sender = sender
        high = id.high
        low = id.low
    }

    /// Makes the key of a subject that bytes identify. It contains their hash, which differs between processes.
    public init(_ kind: Kind, hashing bytes: some Sequence<UInt8>) {
        self.kind = kind
        sender = nil
        var first = Hasher()
        var second = Hasher()
        second.combine(UInt8(1))
        for byte in bytes {
            first.combine(byte)
            second.combine(byte)
        }
        high = UInt64(bitPattern: Int64(first.finalize()))
        low = UInt64(bitPattern: Int64(second.finalize()))
    }

    init(statement type: ObjectIdentifier) {
        kind = .statement
        sender = nil
        high = 0
        low = UInt64(UInt(bitPattern: type))
    }

    public static func == (one: Self, other: Self) -> Bool {
        one.kind == other.kind && one.high == other.high && one.low == other.low
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(kind)
        hasher.combine(high)
        hasher.combine(low)
    }
}

/// The table of keys in use, shared by the loops and clients of a process.
public final class RequestKeys: Sendable {
    private let table = Mutex(KeyTable<KeyWaiter>())

    public init() {}

    var counts: (held: Int, waiting: Int) { table.withLock { ($0.heldCount, $0.waiterCount) } }

    /// The counts of requests that wait for keys in the process, and of those served.
    public var keyWaits: PostgresStatistics.KeyWaitCounts { table.withLock { $0.keyWaits } }

    /// Acquires `key` if it is free.
    func tryHold(_ key: RequestKey, now: ContinuousClock.Instant) -> KeyTable<KeyWaiter>.Route? {
        table.withLock { table in
            guard case .held(let route) = table.acquire(key, waiter: nil, now: now, deadline: now) else { return nil }
            return route
        }
    }

    /// Waits in the queue for `key`, and acquires it.
    /// - Parameter batchOwner: Requests with the same value may hold the key together.
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

    /// Passes `key` to the next holders. Their tasks resume on their own loop.
    func release(_ key: RequestKey) {
        let next = table.withLock { table in
            table.release(key, now: .now).map { ($0.waiter.continuation.take(), $0.route) }
        }
        for (continuation, route) in next { continuation?.resume(returning: .held(route)) }
    }

    /// Marks `key`, after its request met a lock on a shared connection.
    func mark(_ key: RequestKey) { table.withLock { $0.mark(key, now: .now) } }

    /// Rejects waiters whose deadline has passed.
    func expire(now: ContinuousClock.Instant) {
        while let continuation = table.withLock({ $0.expire(now: now)?.continuation.take() }) {
            continuation.resume(returning: .refused)
        }
    }
}

/// A task that waits for a key.
// Safe to share: accessed only under the table's lock.
final class KeyWaiter: @unchecked Sendable {
    enum Outcome: Sendable {
        case held(KeyTable<KeyWaiter>.Route)
        case queueFull, refused, cancelled
    }

    var continuation: UnsafeContinuation<Outcome, Never>?
    var ticket: KeyTable<KeyWaiter>.Ticket?
    var isCancelled = false
}

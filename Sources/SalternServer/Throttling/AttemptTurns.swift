internal import Synchronization

/// Lets one attempt after the other through for each subject of a node, so that whoever sends a thousand guesses at once
/// has no more of them looked at than whoever sends them one by one.
///
/// Those that wait are few; a further one is refused. What is kept is bounded by the requests that are under way.
public final class AttemptTurns: Sendable {
    private typealias Continuation = CheckedContinuation<Turn, Never>

    /// What became of an attempt that had to wait.
    private enum Turn { case granted, refused, cancelled }

    private struct Waiter {
        let number: Int
        let continuation: Continuation
    }

    /// Subjects that are being attempted, and who waits for them.
    private let queues = Mutex<[AttemptSubject: [Waiter]]>([:])
    private let numbers = Atomic<Int>(0)

    /// How many wait for one subject.
    static let waiterLimit = 256

    public init() {}

    /// Subjects that are being attempted now.
    var subjectCount: Int { queues.withLock { $0.count } }

    /// How many wait for a subject now.
    func waiterCount(_ subject: AttemptSubject) -> Int { queues.withLock { $0[subject]?.count ?? 0 } }

    /// Runs `body` when no other attempt of the subject is under way on this node.
    /// - Throws: ``TooManyAttempts`` when too many wait already, `CancellationError`, or what `body` throws.
    func wait<Result>(for subject: AttemptSubject, _ body: () async throws -> Result) async throws -> Result {
        try await take(subject)
        defer { pass(subject) }
        return try await body()
    }

    private func take(_ subject: AttemptSubject) async throws {
        let isFree = queues.withLock { queues in
            if queues[subject] != nil { return false }
            queues[subject] = []
            return true
        }
        if isFree { return }
        let number = numbers.add(1, ordering: .relaxed).newValue
        let turn = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                join(subject, Waiter(number: number, continuation: continuation))
            }
        } onCancel: {
            leave(subject, number)
        }
        switch turn {
        case .granted: return
        case .refused: throw TooManyAttempts(wait: .seconds(1))
        case .cancelled: throw CancellationError()
        }
    }

    private func join(_ subject: AttemptSubject, _ waiter: Waiter) {
        let turn: Turn? = queues.withLock { queues in
            guard let count = queues[subject]?.count else {
                queues[subject] = []
                return .granted
            }
            guard count < Self.waiterLimit else { return .refused }
            queues[subject]?.append(waiter)
            return nil
        }
        if let turn { waiter.continuation.resume(returning: turn) }
    }

    /// A waiter that was cancelled goes; one that has its turn by now keeps it, and ends by itself.
    private func leave(_ subject: AttemptSubject, _ number: Int) {
        let waiter: Waiter? = queues.withLock { queues in
            guard let index = queues[subject]?.firstIndex(where: { $0.number == number }) else { return nil }
            return queues[subject]?.remove(at: index)
        }
        waiter?.continuation.resume(returning: .cancelled)
    }

    private func pass(_ subject: AttemptSubject) {
        let next: Waiter? = queues.withLock { queues in
            guard let queue = queues[subject], !queue.isEmpty else {
                queues[subject] = nil
                return nil
            }
            return queues[subject]?.removeFirst()
        }
        next?.continuation.resume(returning: .granted)
    }
}

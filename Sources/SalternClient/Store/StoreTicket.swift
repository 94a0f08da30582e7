public import Foundation

/// A position in the queue of processes that wait for a store, in the order of their arrival.
///
/// Each has a file in the folder `queue` beside the store, and holds a lock on it (flock(2)). A file without a lock
/// belongs to a process that has ended. The next process that reads the folder removes it.
public final class StoreTicket: Sendable {
    private static let folderName = "queue"
    private static let temporary = ".new-"

    private let folder: String
    /// The name of the ticket's file. Names sort in the order of the tickets.
    public let name: String
    private let file: Descriptor

    /// Takes the last position.
    /// - Parameter folder: The folder of the store.
    /// - Returns: nil when no file can be created.
    public init?(in folder: URL) {
        let queue = folder.appending(path: Self.folderName).path
        guard mkdir(queue, 0o700) == 0 || errno == EEXIST else { return nil }
        // The time since the start of the machine: setting the clock does not change the order.
        var now = timespec()
        #if canImport(Darwin)
            clock_gettime(CLOCK_MONOTONIC, &now)
        #else
            clock_gettime(CLOCK_BOOTTIME, &now)
        #endif
        let text = String(now.nanoseconds)
        let name = String(repeating: "0", count: max(20 - text.count, 0)) + text + "-\(getpid())-\(ItemID.random())"
        let path = queue + "/" + Self.temporary + name
        guard let file = Descriptor(open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)) else {
            return nil
        }
        // The file has its lock before others can find it.
        guard flock(file.number, LOCK_EX | LOCK_NB) == 0, renameFile(path, queue + "/" + name) == 0 else {
            unlink(path)
            return nil
        }
        self.folder = queue
        self.name = name
        self.file = file
    }

    deinit { unlink(folder + "/" + name) }

    /// The first ticket in the queue.
    public var first: String? { Self.waiting(in: folder).first }

    /// True when this ticket is the first.
    public var isFirst: Bool { first.map { $0 >= name } ?? true }

    /// Returns true when a process waits for the store.
    static func isAwaited(_ folder: URL) -> Bool {
        !waiting(in: folder.appending(path: folderName).path).isEmpty
    }

    private static func waiting(in folder: String) -> [String] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        // A file that is being created has no lock for a moment, and a lock here would prevent its own.
        return names.filter { !$0.hasPrefix(temporary) }.sorted().filter { name in
            let path = folder + "/" + name
            guard let file = Descriptor(open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW)) else { return false }
            if flock(file.number, LOCK_EX | LOCK_NB) != 0 { return true }
            unlink(path)
            return false
        }
    }
}

extension StoreTicket {
    /// The longest wait without progress of the queue.
    public static let patience = Duration.seconds(30)
    private static let pause = Duration.milliseconds(20)

    /// Calls `body`, which needs the store, when this process is the first in the queue. It repeats the call while
    /// another process uses the store.
    /// - Throws: ``VaultError/store(_:)`` with ``StoreError/inUse`` when the queue made no progress for ``patience``,
    ///   and the errors of `body`.
    public static func waiting<Result>(in folder: URL, _ body: () async throws -> Result) async throws -> Result {
        try await waiting(in: folder, atMost: patience, body)
    }

    static func waiting<Result>(
        in folder: URL, atMost patience: Duration, _ body: () async throws -> Result
    ) async throws -> Result {
        let ticket = StoreTicket(in: folder)
        var first = ticket?.first
        var end = ContinuousClock.now + patience
        while true {
            if ticket?.isFirst ?? true {
                do {
                    return try await body()
                } catch VaultError.store(.inUse) where ContinuousClock.now < end {}
            } else if ContinuousClock.now >= end {
                throw VaultError.store(.inUse)
            }
            try await Task.sleep(for: pause)
            let next = ticket?.first
            if next != first { end = .now + patience }
            first = next
        }
    }
}

/// The demand for the store of a vault that shares it with other processes.
final class StoreDemand: Sendable {
    private struct State {
        var isShared = false
        var lenderCount = 0
    }

    private let folder: URL
    private let state = Locked(State())

    init(folder: URL) { self.folder = folder }

    /// True when another process waits for the store between rounds, or a call waits to lend it. A sync then does not
    /// repeat failed requests.
    var isWaiting: Bool {
        let state = state.withLock { $0 }
        return state.lenderCount > 0 || state.isShared && StoreTicket.isAwaited(folder)
    }

    /// From now on the store is shared between rounds.
    func share() { state.withLock { $0.isShared = true } }

    /// Calls `body`, which waits to lend the store.
    func lending(_ body: () async -> Void) async {
        state.withLock { $0.lenderCount += 1 }
        await body()
        state.withLock { $0.lenderCount -= 1 }
    }
}

private func renameFile(_ old: String, _ new: String) -> Int32 { rename(old, new) }

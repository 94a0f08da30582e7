internal import CLibEvent
internal import Glibc
internal import Synchronization

/// One thread with one libevent base. All objects of a loop run on its thread and need no lock.
///
/// A loop is a `TaskExecutor`: `Task(executorPreference: loop)` runs a request's `async` functions on the thread of its
/// connection. It is also a `SerialExecutor`, so an actor can be bound to it.
///
/// Each iteration of the loop has these steps:
///
/// 1. Wait for readiness and timers.
/// 2. Call their handlers.
/// 3. Run the Swift jobs that these created.
/// 4. Call ``IterationObserver/iterationEnded()`` of each registered observer, which writes the output of the iteration
///    at once.
// Safe to share: `inbox`, `isWakePending` and `threadID` are synchronised. All other stored properties are used on the
// loop's thread only, which `preconditionInLoop` checks at each public entry.
public final class EventLoop: TaskExecutor, SerialExecutor, @unchecked Sendable {
    /// The thread's name, which `top -H` shows.
    public let name: String

    let base: EventBase
    private let wakeDescriptor: OwnedDescriptor
    private let threadID = Atomic<UInt>(0)
    private let isWakePending = Atomic<Bool>(false)
    private let inbox = Mutex(Inbox())

    private var jobs: [UnownedJob] = []
    private var runningJobs: [UnownedJob] = []
    private var observers: [any IterationObserver] = []
    private var notifiedObservers: [any IterationObserver] = []
    private var givingWay = YieldPolicy()
    private var wakeEvent: DescriptorWatch?
    private var iterationTime: ContinuousClock.Instant?
    private var isStopping = false
    /// The contents of the inbox while the loop works on them. It exchanges its arrays with the inbox.
    private var drained = Inbox()

    /// Work that other threads have submitted.
    private struct Inbox {
        var jobs: [UnownedJob] = []
        var blocks: [@Sendable () -> Void] = []
        var thread: LoopThread?
        var stopRequested = false
    }

    /// The rounds of new jobs that run in one iteration before the loop checks its descriptors again.
    private static let jobRoundsPerIteration = 16

    /// Creates a loop, which runs nothing before ``start()``.
    /// - Throws: ``EventLoopError`` when the system grants no descriptors or memory.
    public init(name: String) throws(EventLoopError) {
        self.name = name
        base = try EventBase()
        wakeDescriptor = try OwnedDescriptor(takingOwnershipOf: eventfd(0, CInt(EFD_NONBLOCK) | CInt(EFD_CLOEXEC)))
    }

    deinit {
        precondition(inbox.withLock { $0.thread == nil }, "an event loop must be stopped before it is freed")
    }

    /// Starts the loop's thread.
    public func start() throws(EventLoopError) {
        let thread = try LoopThread(name: name) { self.run() }
        inbox.withLock { $0.thread = thread }
    }

    /// Ends the loop after the submitted jobs, and waits for its thread.
    ///
    /// Never call it from the loop's own thread. Watched descriptors are not served after that.
    public func stop() {
        precondition(!isInLoop, "a loop cannot wait for its own end")
        let thread = inbox.withLock { inbox in
            inbox.stopRequested = true
            return inbox.thread
        }
        wake()
        thread?.join()
        inbox.withLock { $0.thread = nil }
    }

    /// True on this loop's thread.
    public var isInLoop: Bool { threadID.load(ordering: .relaxed) == UInt(pthread_self()) }

    /// Stops the program when the caller is on another thread, which would race with the loop.
    public func preconditionInLoop() {
        precondition(isInLoop, "called off the event loop's thread")
    }

    /// The time of this iteration, read once in each.
    public var now: ContinuousClock.Instant {
        preconditionInLoop()
        if let iterationTime { return iterationTime }
        let time = ContinuousClock.now
        iterationTime = time
        return time
    }

    /// Runs `body` on the loop, from any thread.
    public func schedule(_ body: @escaping @Sendable () -> Void) {
        inbox.withLock { $0.blocks.append(body) }
        wake()
    }

    /// Runs an async `body` on the loop as a child of the current task, and returns its result.
    public func run<Value: Sendable, Failure: Error>(
        _ body: @escaping @Sendable () async throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        let result = await withTaskGroup(of: Result<Value, Failure>.self) { group in
            group.addTask(executorPreference: self) {
                do throws(Failure) {
                    return .success(try await body())
                } catch {
                    return .failure(error)
                }
            }
            // A group returns the result of each of its children, also after a cancellation.
            guard let result = await group.next() else { preconditionFailure("the child has a result") }
            return result
        }
        return try result.get()
    }

    /// Calls `observer.iterationEnded()` once at the end of this iteration, also after several calls.
    public func notifyAtIterationEnd(_ observer: some IterationObserver) {
        preconditionInLoop()
        if observer.isIterationEndRequested { return }
        observer.isIterationEndRequested = true
        observers.append(observer)
    }

    /// Suspends long work until the loop has served its descriptors and timers once.
    ///
    /// In each iteration, the longest waiting of the suspended tasks continues. A short task therefore waits for one
    /// slice of long work at most.
    public func giveWay() async {
        preconditionInLoop()
        await withUnsafeContinuation { givingWay.append($0) }
    }

    // MARK: Executor

    public func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        if isInLoop {
            jobs.append(job)
        } else {
            inbox.withLock { $0.jobs.append(job) }
            wake()
        }
    }

    public func checkIsolated() { preconditionInLoop() }

    // MARK: Thread

    private func wake() {
        if isWakePending.exchange(true, ordering: .acquiringAndReleasing) { return }
        _ = eventfd_write(wakeDescriptor.rawValue, 1)
    }

    private func run() {
        threadID.store(UInt(pthread_self()), ordering: .relaxed)
        let wakeEvent = DescriptorWatch(loop: self, descriptor: wakeDescriptor.rawValue) { [unowned self] _ in
            drainInbox()
        }
        wakeEvent.setReading(true)
        self.wakeEvent = wakeEvent
        drainInbox()
        while !(isStopping && jobs.isEmpty && observers.isEmpty && givingWay.isEmpty) {
            turn()
        }
        wakeEvent.cancel()
        self.wakeEvent = nil
        threadID.store(0, ordering: .relaxed)
    }

    private func turn() {
        iterationTime = nil
        base.dispatch(blocking: jobs.isEmpty && observers.isEmpty && givingWay.isEmpty && !isStopping)
        runJobs()
        swap(&observers, &notifiedObservers)
        for observer in notifiedObservers {
            observer.isIterationEndRequested = false
            observer.iterationEnded()
        }
        notifiedObservers.removeAll(keepingCapacity: true)
        givingWay.popFirst()?.resume()
    }

    private func runJobs() {
        let serial = asUnownedSerialExecutor()
        let task = asUnownedTaskExecutor()
        for _ in 0..<Self.jobRoundsPerIteration {
            if jobs.isEmpty { return }
            swap(&jobs, &runningJobs)
            for job in runningJobs { job.runSynchronously(isolatedTo: serial, taskExecutor: task) }
            runningJobs.removeAll(keepingCapacity: true)
        }
    }

    private func drainInbox() {
        var count: eventfd_t = 0
        _ = eventfd_read(wakeDescriptor.rawValue, &count)
        isWakePending.store(false, ordering: .sequentiallyConsistent)
        let stopRequested = inbox.withLock { inbox in
            swap(&inbox.jobs, &drained.jobs)
            swap(&inbox.blocks, &drained.blocks)
            return inbox.stopRequested
        }
        jobs.append(contentsOf: drained.jobs)
        for block in drained.blocks { block() }
        drained.jobs.removeAll(keepingCapacity: true)
        drained.blocks.removeAll(keepingCapacity: true)
        if stopRequested { isStopping = true }
    }
}

/// A queue of suspended tasks, first in, first out.
struct YieldPolicy {
    private var waiting: [UnsafeContinuation<Void, Never>] = []
    private var first = 0

    var isEmpty: Bool { first == waiting.count }

    mutating func append(_ continuation: UnsafeContinuation<Void, Never>) { waiting.append(continuation) }

    mutating func popFirst() -> UnsafeContinuation<Void, Never>? {
        guard !isEmpty else { return nil }
        defer {
            first += 1
            // Moving the rest costs no more than the removals since the last move.
            if first * 2 > waiting.count {
                waiting.removeFirst(first)
                first = 0
            }
        }
        return waiting[first]
    }
}

/// Owns one `event_base *`.
///
/// The base has no locks of libevent: only its loop's thread may use it, and other threads wake that thread through a
/// descriptor.
final class EventBase {
    let pointer: OpaquePointer

    init() throws(EventLoopError) {
        guard let config = event_config_new() else { throw .outOfMemory }
        defer { event_config_free(config) }
        event_config_set_flag(config, CInt(EVENT_BASE_FLAG_NOLOCK.rawValue))
        event_config_set_flag(config, CInt(EVENT_BASE_FLAG_IGNORE_ENV.rawValue))
        // Combines the changes of a descriptor in an iteration into one epoll_ctl. Safe, because no descriptor is
        // dup'ed.
        event_config_set_flag(config, CInt(EVENT_BASE_FLAG_EPOLL_USE_CHANGELIST.rawValue))
        guard let base = event_base_new_with_config(config) else { throw .system(operation: "event_base_new", errno) }
        pointer = base
    }

    deinit { event_base_free(pointer) }

    /// Calls the handlers of ready descriptors and expired timers. Waits for one of them when `blocking`.
    func dispatch(blocking: Bool) {
        let flags = CInt(EVLOOP_ONCE) | (blocking ? CInt(EVLOOP_NO_EXIT_ON_EMPTY) : CInt(EVLOOP_NONBLOCK))
        event_base_loop(pointer, flags)
    }
}

/// A joinable thread with a name.
final class LoopThread: Sendable {
    private let id: pthread_t

    private final class Start: Sendable {
        let name: String
        let body: @Sendable () -> Void
        init(name: String, body: @escaping @Sendable () -> Void) {
            self.name = name
            self.body = body
        }
    }

    /// Starts a thread that runs `body`. Signals are blocked in it: the main thread handles them.
    init(name: String, body: @escaping @Sendable () -> Void) throws(EventLoopError) {
        let start = Unmanaged.passRetained(Start(name: name, body: body))
        var id = pthread_t()
        let code = pthread_create(
            &id, nil,
            { context in
                guard let context else { return nil }
                let start = Unmanaged<Start>.fromOpaque(context).takeRetainedValue()
                var all = sigset_t()
                sigfillset(&all)
                pthread_sigmask(SIG_BLOCK, &all, nil)
                saltern_name_current_thread(start.name)
                start.body()
                return nil
            }, start.toOpaque())
        guard code == 0 else {
            start.release()
            throw .system(operation: "pthread_create", code)
        }
        self.id = id
    }

    func join() { pthread_join(id, nil) }
}

/// A failure of the system to serve an event loop.
public enum EventLoopError: Error, CustomStringConvertible {
    /// A system call failed with this `errno`.
    case system(operation: String, CInt)
    /// libevent could not allocate.
    case outOfMemory

    public var description: String {
        switch self {
        case .system(let operation, let code): "\(operation): \(String(cString: strerror(code)))"
        case .outOfMemory: "out of memory"
        }
    }
}

/// An object that collects work during an iteration of a loop and does it once at the end.
public protocol IterationObserver: AnyObject {
    /// True when the observer is registered for the end of this iteration. The loop sets it; its initial value is
    /// `false`.
    var isIterationEndRequested: Bool { get set }

    /// Runs on the loop's thread after the iteration's handlers and jobs.
    func iterationEnded()
}

/// Holds a value of a loop's thread, and can be passed to other threads. Every access checks the thread.
// Safe to share: `value` is the only access, and it stops the program on another thread.
public struct LoopBound<Value>: @unchecked Sendable {
    /// The loop that the value belongs to.
    public let loop: EventLoop
    private let stored: Value

    /// Holds `value`. The caller is on `loop`.
    public init(_ value: Value, loop: EventLoop) {
        loop.preconditionInLoop()
        self.loop = loop
        stored = value
    }

    /// The value. The caller is on ``loop``.
    public var value: Value {
        loop.preconditionInLoop()
        return stored
    }
}

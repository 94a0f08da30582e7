internal import CLibEvent
internal import Glibc
internal import Synchronization

/// One thread and one libevent base: everything that belongs to a loop runs on its thread and needs no lock.
///
/// A loop is a `TaskExecutor`, so `Task(executorPreference: loop)` runs a request's `async` functions on the
/// thread that owns its connection, and a `SerialExecutor`, so an actor can be pinned to it.
///
/// A turn of the loop is: wait for readiness and timers, call their handlers, run the Swift jobs these made,
/// then call ``IterationObserver/iterationEnded()`` of everybody who asked for it. Output gathered in a turn is
/// therefore written once.
// Safe to share: `inbox`, `isWakePending` and `threadID` are synchronised; every other stored property is
// touched on the loop's thread only, which `preconditionInLoop` checks at each public entry.
public final class EventLoop: TaskExecutor, SerialExecutor, @unchecked Sendable {
    /// The thread's name, as `top -H` shows it.
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
    /// What was in the inbox, while it is worked on; its arrays take turns with the inbox's own.
    private var drained = Inbox()

    /// What other threads have left for the loop.
    private struct Inbox {
        var jobs: [UnownedJob] = []
        var blocks: [@Sendable () -> Void] = []
        var thread: LoopThread?
        var stopRequested = false
    }

    /// How many times in one turn freshly made jobs are run before the loop looks at its descriptors again.
    private static let jobRoundsPerIteration = 16

    /// Makes a loop; nothing runs before ``start()``.
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

    /// Ends the loop after the jobs that are already there, and waits for its thread.
    ///
    /// Never call it from the loop's own thread. Descriptors that are still watched are simply no longer served.
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

    /// Whether the caller runs on this loop's thread.
    public var isInLoop: Bool { threadID.load(ordering: .relaxed) == UInt(pthread_self()) }

    /// Stops the program when the caller is on another thread: the loop's state would be torn.
    public func preconditionInLoop() {
        precondition(isInLoop, "called off the event loop's thread")
    }

    /// The time of this turn, read once a turn.
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
            // A group yields the result of each of its children, also after a cancellation.
            guard let result = await group.next() else { preconditionFailure("the child has a result") }
            return result
        }
        return try result.get()
    }

    /// Calls `observer.iterationEnded()` once at the end of this turn, however often it is asked.
    public func notifyAtIterationEnd(_ observer: some IterationObserver) {
        preconditionInLoop()
        if observer.isIterationEndRequested { return }
        observer.isIterationEndRequested = true
        observers.append(observer)
    }

    /// Lets everybody else have their turn in the middle of long work: returns when the loop has looked at its
    /// descriptors and timers again. Of all that give way one goes on in each turn, the one that has waited longest: so
    /// whoever has little to do waits for one piece of long work at most.
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

/// Who has given way, in the order in which they go on.
struct YieldPolicy {
    private var waiting: [UnsafeContinuation<Void, Never>] = []
    private var first = 0

    var isEmpty: Bool { first == waiting.count }

    mutating func append(_ continuation: UnsafeContinuation<Void, Never>) { waiting.append(continuation) }

    mutating func popFirst() -> UnsafeContinuation<Void, Never>? {
        guard !isEmpty else { return nil }
        defer {
            first += 1
            // Moving the rest costs no more than what was taken since the last time.
            if first * 2 > waiting.count {
                waiting.removeFirst(first)
                first = 0
            }
        }
        return waiting[first]
    }
}

/// Owner of one `event_base *`.
///
/// The base is made without libevent's locks: only its loop's thread may touch it, and other threads wake
/// that thread through a descriptor.
final class EventBase {
    let pointer: OpaquePointer

    init() throws(EventLoopError) {
        guard let config = event_config_new() else { throw .outOfMemory }
        defer { event_config_free(config) }
        event_config_set_flag(config, CInt(EVENT_BASE_FLAG_NOLOCK.rawValue))
        event_config_set_flag(config, CInt(EVENT_BASE_FLAG_IGNORE_ENV.rawValue))
        // One epoll_ctl for several changes of a descriptor in a turn; safe because no descriptor is dup'ed.
        event_config_set_flag(config, CInt(EVENT_BASE_FLAG_EPOLL_USE_CHANGELIST.rawValue))
        guard let base = event_base_new_with_config(config) else { throw .system(operation: "event_base_new", errno) }
        pointer = base
    }

    deinit { event_base_free(pointer) }

    /// Waits for readiness or a timer when `blocking`, and calls the handlers of what is due.
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

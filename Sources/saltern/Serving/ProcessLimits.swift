internal import CPlatform
import Foundation

enum ProcessLimits {
    /// Protects the process's memory, which holds keys, from core dumps and other processes of the same user, unless
    /// the environment allows them.
    static func forbidDumps() {
        var settings = Settings(ProcessInfo.processInfo.environment)
        if settings.allowsDumps() { return }
        var limit = rlimit(rlim_cur: 0, rlim_max: 0)
        setrlimit(Int32(RLIMIT_CORE.rawValue), &limit)
        _ = saltern_forbid_dumps()
    }

    /// Raises the soft limit of descriptors to its maximum.
    /// - Returns: The resulting limit.
    static func raiseDescriptors() -> Int {
        let resource = Int32(RLIMIT_NOFILE.rawValue)
        var limit = rlimit()
        guard getrlimit(resource, &limit) == 0 else { return 0 }
        if limit.rlim_cur < limit.rlim_max {
            var raised = rlimit(rlim_cur: limit.rlim_max, rlim_max: limit.rlim_max)
            if setrlimit(resource, &raised) == 0 { limit = raised }
        }
        return Int(clamping: limit.rlim_cur)
    }

    /// Makes malloc return memory to the system.
    ///
    /// Each loop has a heap, and the other threads share a few. Blocks of 256 KiB or more, such as bodies and replies,
    /// are mapped separately. By default this threshold grows with freed blocks, and large bodies fragment the heaps.
    static func boundAllocator(loopCount: Int) {
        _ = saltern_bound_allocator(Int32(clamping: loopCount + 2), mappedBytes, 1_048_576)
    }

    private static let mappedBytes: Int32 = 256 * 1_024
}

/// The process's resident memory, and the return of free memory to the system.
enum ResidentMemory {
    /// The second number of `/proc/self/statm`, converted from pages to bytes.
    static var bytes: Int? {
        guard let text = try? TextFile.contents(atPath: "/proc/self/statm", limit: 4_096) else { return nil }
        let numbers = text.split(separator: " ")
        guard numbers.count > 1, let pages = Int(numbers[1]) else { return nil }
        return pages * sysconf(CInt(_SC_PAGESIZE))
    }

    /// Returns free pages from time to time until it is cancelled.
    ///
    /// It does not run on a loop: trimming a large heap locks it for some milliseconds.
    static func keepLow() async {
        var policy = TrimPolicy()
        while (try? await Task.sleep(for: .seconds(5))) != nil {
            guard policy.isDue(free: saltern_free_heap_bytes()) else { continue }
            malloc_trim(0)
        }
    }
}

/// Decides when to return malloc's free pages. Without a call, pages between used ones stay.
///
/// It counts memory that became free since the last time. Resident memory is no criterion: it stays the same when
/// memory becomes free, and returned pages still count as free.
struct TrimPolicy {
    /// The minimum of free bytes since the last time.
    private var floor = Int.max
    /// The minimum number of bytes to return.
    private static let step = 8 * 1_048_576

    /// Returns true if enough memory has become free.
    mutating func isDue(free: Int) -> Bool {
        floor = min(floor, free)
        guard free - floor > Self.step else { return false }
        floor = free
        return true
    }
}

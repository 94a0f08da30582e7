internal import CPlatform
import Foundation

/// What the process asks of the system for itself.
enum ProcessLimits {
    /// Set to `on`, it leaves dumps and debuggers as the system has them.
    static let dumpVariable = "SALTERN_CORE_DUMPS"

    /// Keeps the process's memory, which holds keys, from core dumps and from other processes of the same user.
    static func forbidDumps() {
        if let value = getenv(dumpVariable), strcmp(value, "on") == 0 { return }
        var limit = rlimit(rlim_cur: 0, rlim_max: 0)
        setrlimit(Int32(RLIMIT_CORE.rawValue), &limit)
        _ = saltern_forbid_dumps()
    }

    /// Raises the soft limit of descriptors as far as it goes.
    /// - Returns: The limit that holds now.
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

    /// Makes malloc give memory back: one heap for each loop and a few for the other threads, and what is large enough to
    /// be a body or a reply mapped by itself. (By default the threshold grows with what is freed, and large bodies leave
    /// their holes in the heaps.)
    static func boundAllocator(loopCount: Int) {
        _ = saltern_bound_allocator(Int32(clamping: loopCount + 2), mappedBytes, 1_048_576)
    }

    private static let mappedBytes: Int32 = 256 * 1_024
}

internal import CPlatform
import Foundation

enum ProcessLimits {
    /// The value `on` leaves core dumps and debuggers at the system's defaults.
    static let dumpVariable = "SALTERN_CORE_DUMPS"

    /// Protects the process's memory, which holds keys, from core dumps and other processes of the same user.
    static func forbidDumps() {
        if let value = getenv(dumpVariable), strcmp(value, "on") == 0 { return }
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

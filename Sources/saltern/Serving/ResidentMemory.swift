internal import CPlatform
import Foundation

/// The process's resident memory, and how what malloc no longer needs of it goes back to the system.
enum ResidentMemory {
    /// The second number of `/proc/self/statm`, in pages.
    static var bytes: Int? {
        guard let text = try? TextFile.contents(atPath: "/proc/self/statm", limit: 4_096) else { return nil }
        let numbers = text.split(separator: " ")
        guard numbers.count > 1, let pages = Int(numbers[1]) else { return nil }
        return pages * sysconf(CInt(_SC_PAGESIZE))
    }

    /// Gives free pages back from time to time, until it is cancelled. Not on a loop: a heap is locked meanwhile, for
    /// some milliseconds when it is large.
    static func keepLow() async {
        var policy = TrimPolicy()
        while (try? await Task.sleep(for: .seconds(5))) != nil {
            guard policy.isDue(free: saltern_free_heap_bytes()) else { continue }
            malloc_trim(0)
        }
    }
}

/// When it is worth giving back what malloc holds and nobody uses: pages between others that are used go back only when
/// it is asked to.
///
/// What counts is what has become free since the last time. How much memory is resident would not tell: it stays as it
/// is while what was in use becomes free, and pages that were given back still count as free.
struct TrimPolicy {
    /// The fewest free bytes since the last time.
    private var floor = Int.max
    /// Less than this is not worth it.
    private static let step = 8 * 1_048_576

    /// Whether so much has become free that it is to be given back now.
    mutating func isDue(free: Int) -> Bool {
        floor = min(floor, free)
        guard free - floor > Self.step else { return false }
        floor = free
        return true
    }
}

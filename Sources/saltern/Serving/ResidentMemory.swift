internal import CPlatform
import Foundation

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

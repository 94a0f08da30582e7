/// Checks progress: a number of bytes in each window of time. Pure: the caller reports the start and end of windows.
struct ProgressMeter {
    private var countAtStart = 0
    private var forgives: Bool

    /// - Parameter forgivesFirst: Requires nothing in the first window.
    init(forgivesFirst: Bool = false) { forgives = forgivesFirst }

    /// Begins a window at a number of bytes.
    mutating func begin(at count: Int) { countAtStart = count }

    /// Ends a window, and begins the next. Returns whether enough bytes moved in it.
    mutating func windowPassed(at count: Int, requiring required: Int) -> Bool {
        defer {
            countAtStart = count
            forgives = false
        }
        return forgives || count - countAtStart >= required
    }
}

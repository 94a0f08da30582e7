/// Whether something moves: so many bytes in each window of time. Pure: told when a window begins and when it is over.
struct ProgressMeter {
    private var countAtStart = 0
    private var forgives: Bool

    /// - Parameter forgivesFirst: Whether nothing is demanded in the first window.
    init(forgivesFirst: Bool = false) { forgives = forgivesFirst }

    /// A window begins when so many bytes have moved.
    mutating func begin(at count: Int) { countAtStart = count }

    /// A window is over, and another one begins. Returns whether as many bytes have moved in it as are required.
    mutating func windowPassed(at count: Int, requiring required: Int) -> Bool {
        defer {
            countAtStart = count
            forgives = false
        }
        return forgives || count - countAtStart >= required
    }
}

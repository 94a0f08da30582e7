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

/// A first-in, first-out queue in a ring that grows and never shrinks.
struct Queue<Element> {
    private var slots: [Element?] = Array(repeating: nil, count: 16)
    private var head = 0
    private(set) var count = 0

    var isEmpty: Bool { count == 0 }

    /// The next element to leave.
    var first: Element? { count == 0 ? nil : slots[head] }

    mutating func append(_ element: Element) {
        if count == slots.count { grow() }
        slots[(head + count) & (slots.count - 1)] = element
        count += 1
    }

    mutating func popFirst() -> Element? {
        if count == 0 { return nil }
        let element = slots[head].take()
        head = (head + 1) & (slots.count - 1)
        count -= 1
        return element
    }

    // The size stays a power of two, which the mask above requires.
    private mutating func grow() {
        var larger: [Element?] = []
        larger.reserveCapacity(slots.count * 2)
        for index in 0..<count { larger.append(slots[(head + index) & (slots.count - 1)]) }
        larger.append(contentsOf: repeatElement(nil, count: slots.count * 2 - count))
        slots = larger
        head = 0
    }
}

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

/// First-in, first-out lists in one storage, with removal from any position in constant time.
///
/// The storage grows to the largest number of elements that ever waited, and is reused.
struct WaitingLists<Element> {
    /// One list of this storage, passed with each call.
    struct List {
        fileprivate var head = -1
        fileprivate var tail = -1
        fileprivate(set) var count = 0

        var isEmpty: Bool { count == 0 }
    }

    /// An element's position. It becomes invalid when the element leaves, even if another one takes its place.
    struct Place: Hashable {
        fileprivate let index: Int
        fileprivate let generation: UInt64
    }

    private struct Node {
        var element: Element?
        var previous = -1
        var next = -1
        var generation: UInt64 = 0
    }

    private var nodes: [Node] = []
    private var free = -1

    /// The number of elements in all lists.
    private(set) var count = 0

    mutating func append(_ element: Element, to list: inout List) -> Place {
        let index = makeNode()
        nodes[index].element = element
        nodes[index].previous = list.tail
        nodes[index].next = -1
        if list.tail >= 0 { nodes[list.tail].next = index } else { list.head = index }
        list.tail = index
        list.count += 1
        count += 1
        return Place(index: index, generation: nodes[index].generation)
    }

    /// Returns the next element to leave.
    func first(of list: List) -> Element? { list.head < 0 ? nil : nodes[list.head].element }

    mutating func popFirst(of list: inout List) -> Element? {
        list.head < 0 ? nil : take(list.head, from: &list)
    }

    /// Removes and returns the first element that satisfies `condition`.
    mutating func popFirst(of list: inout List, where condition: (Element) -> Bool) -> Element? {
        var index = list.head
        while index >= 0 {
            if let element = nodes[index].element, condition(element) { return take(index, from: &list) }
            index = nodes[index].next
        }
        return nil
    }

    /// Returns the element at `place`, if it is still there.
    func element(at place: Place) -> Element? {
        nodes.indices.contains(place.index) && nodes[place.index].generation == place.generation
            ? nodes[place.index].element : nil
    }

    /// Removes and returns the element at `place`, if it is still there. `list` must be its list.
    mutating func remove(_ place: Place, from list: inout List) -> Element? {
        element(at: place) == nil ? nil : take(place.index, from: &list)
    }

    private mutating func take(_ index: Int, from list: inout List) -> Element? {
        let (previous, next) = (nodes[index].previous, nodes[index].next)
        if previous >= 0 { nodes[previous].next = next } else { list.head = next }
        if next >= 0 { nodes[next].previous = previous } else { list.tail = previous }
        list.count -= 1
        count -= 1
        nodes[index].generation += 1
        nodes[index].next = free
        free = index
        return nodes[index].element.take()
    }

    private mutating func makeNode() -> Int {
        guard free >= 0 else {
            nodes.append(Node())
            return nodes.count - 1
        }
        defer { free = nodes[free].next }
        return free
    }
}

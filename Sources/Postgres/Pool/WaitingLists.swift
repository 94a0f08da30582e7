/// First-in, first-out lists that share one storage, from anywhere in which an element can be taken at once.
///
/// The storage grows to the largest number of elements that ever waited, and is used again.
struct WaitingLists<Element> {
    /// One list of this storage; passed back with each call.
    struct List {
        fileprivate var head = -1
        fileprivate var tail = -1
        fileprivate(set) var count = 0

        var isEmpty: Bool { count == 0 }
    }

    /// Where an element waits. Of no more use once the element has left, even if another one has its place by then.
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

    /// How many elements wait in all lists together.
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

    /// The element that leaves next.
    func first(of list: List) -> Element? { list.head < 0 ? nil : nodes[list.head].element }

    mutating func popFirst(of list: inout List) -> Element? {
        list.head < 0 ? nil : take(list.head, from: &list)
    }

    /// Takes the first element out that is as `condition` says.
    mutating func popFirst(of list: inout List, where condition: (Element) -> Bool) -> Element? {
        var index = list.head
        while index >= 0 {
            if let element = nodes[index].element, condition(element) { return take(index, from: &list) }
            index = nodes[index].next
        }
        return nil
    }

    /// The element at `place`, if it still waits.
    func element(at place: Place) -> Element? {
        nodes.indices.contains(place.index) && nodes[place.index].generation == place.generation
            ? nodes[place.index].element : nil
    }

    /// Takes out the element at `place`, which is in `list` if it still waits.
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

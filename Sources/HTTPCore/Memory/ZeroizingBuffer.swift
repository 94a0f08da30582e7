internal import Glibc

/// Bytes whose memory is zeroed before it is given back: what a client sends and is sent can be a key or a token.
///
/// A value like an array: copies share the memory until one of them is changed, and a copy that is made when it grows
/// leaves nothing behind.
// Safe to share: memory is changed only through the one value that refers to it, as in an array; the JSON parser, which
// writes in place, does so before anybody else can know of the memory.
public struct ZeroizingBuffer: @unchecked Sendable {
    private(set) var storage: Storage

    /// No bytes; nothing is allocated.
    public init() { storage = .empty }

    /// No bytes, and room for so many.
    public init(capacity: Int) { storage = .make(capacity: capacity) }

    /// Copies bytes. What they are copied from is left as it is.
    public init(copying bytes: UnsafeRawBufferPointer) {
        self.init(capacity: bytes.count)
        append(bytes)
    }

    /// Copies bytes. What they are copied from is left as it is.
    public init(_ bytes: some Sequence<UInt8>) {
        self.init(capacity: bytes.underestimatedCount)
        append(contentsOf: bytes)
    }

    struct Extent {
        var count: Int
        var capacity: Int
    }

    /// Memory and how much of it is used.
    final class Storage: ManagedBuffer<Extent, UInt8> {
        // Safe to share: it has no bytes, and is never the only reference that a change asks for.
        nonisolated(unsafe) static let empty = make(capacity: 0)

        static func make(capacity: Int) -> Storage {
            let storage = create(minimumCapacity: capacity) { _ in Extent(count: 0, capacity: capacity) }
            return unsafeDowncast(storage, to: Storage.self)
        }

        var memory: UnsafeMutablePointer<UInt8> { withUnsafeMutablePointerToElements { $0 } }

        /// The header in place: through `header` each byte that is added would be checked for exclusive access at run time.
        var extent: UnsafeMutablePointer<Extent> { withUnsafeMutablePointerToHeader { $0 } }

        /// How many bytes are used.
        var count: Int {
            get { extent.pointee.count }
            set { extent.pointee.count = newValue }
        }

        deinit { explicit_bzero(memory, count) }
    }

    /// How many bytes fit without moving.
    public var capacity: Int { storage.extent.pointee.capacity }

    /// Calls `body` with the bytes, without a copy.
    public func withUnsafeBytes<Result, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        defer { extendLifetime(storage) }
        return try body(UnsafeRawBufferPointer(start: storage.memory, count: storage.count))
    }

    /// Calls `body` with the bytes, which it may change.
    public mutating func withUnsafeMutableBytes<Result, Failure: Error>(
        _ body: (UnsafeMutableRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        prepareToChange(capacity: count)
        defer { extendLifetime(storage) }
        return try body(UnsafeMutableRawBufferPointer(start: storage.memory, count: storage.count))
    }

    /// Adds a byte.
    @inline(__always)
    public mutating func append(_ byte: UInt8) {
        makeRoom(for: 1)
        storage.memory[storage.count] = byte
        storage.count += 1
    }

    /// Adds bytes.
    public mutating func append(_ bytes: UnsafeRawBufferPointer) {
        guard let source = bytes.baseAddress, !bytes.isEmpty else { return }
        makeRoom(for: bytes.count)
        UnsafeMutableRawPointer(storage.memory + storage.count).copyMemory(
            from: source, byteCount: bytes.count)
        storage.count += bytes.count
    }

    /// Adds bytes.
    public mutating func append(contentsOf bytes: some Sequence<UInt8>) {
        let isDone: Void? = bytes.withContiguousStorageIfAvailable { append(UnsafeRawBufferPointer($0)) }
        if isDone != nil { return }
        for byte in bytes { append(byte) }
    }

    /// Adds at most `capacity` bytes that `fill` puts in place; it returns how many these are.
    public mutating func append(capacity: Int, filledBy fill: (UnsafeMutableBufferPointer<UInt8>) -> Int) {
        makeRoom(for: capacity)
        let free = UnsafeMutableBufferPointer(start: storage.memory + storage.count, count: capacity)
        free.initialize(repeating: 0)
        let count = fill(free)
        precondition((0...capacity).contains(count), "the filled bytes exceed the capacity")
        storage.count += count
    }

    /// Makes room for so many bytes in all.
    public mutating func reserveCapacity(_ capacity: Int) { prepareToChange(capacity: capacity) }

    /// Forgets the bytes and zeroes their memory.
    public mutating func removeAll(keepingCapacity keepsCapacity: Bool = false) {
        guard keepsCapacity, isKnownUniquelyReferenced(&storage) else { return storage = .empty }
        explicit_bzero(storage.memory, storage.count)
        storage.count = 0
    }

    /// Forgets the first bytes; the others move to the front.
    public mutating func removeFirst(_ dropped: Int) {
        precondition((0...count).contains(dropped), "the removed bytes exceed the count")
        withUnsafeMutableBytes { bytes in
            bytes.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[dropped...]))
            UnsafeMutableRawBufferPointer(rebasing: bytes[(bytes.count - dropped)...]).wipe()
        }
        storage.count -= dropped
    }

    @inline(__always)
    private mutating func makeRoom(for more: Int) {
        let needed = storage.count + more
        if needed <= storage.extent.pointee.capacity, isKnownUniquelyReferenced(&storage) { return }
        prepareToChange(capacity: needed <= capacity ? needed : Swift.max(needed, capacity * 2))
    }

    /// Makes the memory this value's own, with room for so many bytes.
    private mutating func prepareToChange(capacity: Int) {
        if capacity <= self.capacity, isKnownUniquelyReferenced(&storage) { return }
        let old = storage
        let grown = Storage.make(capacity: Swift.max(capacity, old.count))
        grown.memory.initialize(from: old.memory, count: old.count)
        grown.count = old.count
        storage = grown
    }
}

extension ZeroizingBuffer: RandomAccessCollection {
    public var startIndex: Int { 0 }
    public var endIndex: Int { storage.count }

    public subscript(position: Int) -> UInt8 {
        precondition(position >= 0 && position < endIndex, "the position is out of bounds")
        return storage.memory[position]
    }

    public func withContiguousStorageIfAvailable<Result>(
        _ body: (UnsafeBufferPointer<UInt8>) throws -> Result
    ) rethrows -> Result? {
        defer { extendLifetime(storage) }
        return try body(UnsafeBufferPointer(start: storage.memory, count: storage.count))
    }
}

extension [UInt8] {
    /// A copy that nobody zeroes, in one piece: the initialiser for any sequence takes it byte by byte.
    public init(_ bytes: ZeroizingBuffer) {
        self = bytes.withUnsafeBytes { [UInt8]($0) }
    }
}

extension ZeroizingBuffer: Equatable, ExpressibleByArrayLiteral {
    public static func == (left: ZeroizingBuffer, right: ZeroizingBuffer) -> Bool {
        defer { extendLifetime((left.storage, right.storage)) }
        return left.storage === right.storage
            || left.count == right.count && memcmp(left.storage.memory, right.storage.memory, left.count) == 0
    }

    public init(arrayLiteral elements: UInt8...) { self.init(elements) }
}

extension ZeroizingBuffer: CustomStringConvertible, CustomReflectable {
    /// The number of bytes and nothing else.
    public var description: String { "WipedBytes(\(count))" }
    public var customMirror: Mirror { Mirror(self, children: ["count": count]) }
}

extension UnsafeMutableRawBufferPointer {
    /// Zeroes the bytes, also when nobody reads them any more.
    public func wipe() {
        guard let baseAddress else { return }
        explicit_bzero(baseAddress, count)
    }
}

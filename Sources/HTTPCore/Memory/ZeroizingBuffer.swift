internal import Glibc

/// Bytes in memory that is zeroed before its release, because requests and replies can have keys and tokens.
///
/// A value like an array: copies share the memory until one of them is changed. Growth leaves no copy behind.
// Safe to share: memory is changed only through the one value that refers to it, as in an array. The JSON parser writes
// in place before other code can refer to the memory.
public struct ZeroizingBuffer: @unchecked Sendable {
    private(set) var storage: Storage

    /// Creates no bytes, and allocates nothing.
    public init() { storage = .empty }

    /// Creates no bytes, with room for `capacity`.
    public init(capacity: Int) { storage = .make(capacity: capacity) }

    /// Copies bytes. The original is left unchanged.
    public init(copying bytes: UnsafeRawBufferPointer) {
        self.init(capacity: bytes.count)
        append(bytes)
    }

    /// Copies bytes. The original is left unchanged.
    public init(_ bytes: some Sequence<UInt8>) {
        self.init(capacity: bytes.underestimatedCount)
        append(contentsOf: bytes)
    }

    struct Extent {
        var count: Int
        var capacity: Int
    }

    /// Memory with the number of used bytes.
    final class Storage: ManagedBuffer<Extent, UInt8> {
        // Safe to share: it has no bytes, and is never the only reference, which a change requires.
        nonisolated(unsafe) static let empty = make(capacity: 0)

        static func make(capacity: Int) -> Storage {
            let storage = create(minimumCapacity: capacity) { _ in Extent(count: 0, capacity: capacity) }
            return unsafeDowncast(storage, to: Storage.self)
        }

        var memory: UnsafeMutablePointer<UInt8> { withUnsafeMutablePointerToElements { $0 } }

        /// The header in place. Through `header`, each added byte would need a check for exclusive access at run time.
        var extent: UnsafeMutablePointer<Extent> { withUnsafeMutablePointerToHeader { $0 } }

        /// The number of used bytes.
        var count: Int {
            get { extent.pointee.count }
            set { extent.pointee.count = newValue }
        }

        deinit { explicit_bzero(memory, count) }
    }

    /// The number of bytes that fit without reallocation.
    public var capacity: Int { storage.extent.pointee.capacity }

    /// Calls `body` with the bytes, without a copy.
    public func withUnsafeBytes<Result, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        defer { extendLifetime(storage) }
        return try body(UnsafeRawBufferPointer(start: storage.memory, count: storage.count))
    }

    /// Calls `body` with the mutable bytes.
    public mutating func withUnsafeMutableBytes<Result, Failure: Error>(
        _ body: (UnsafeMutableRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        prepareToChange(capacity: count)
        defer { extendLifetime(storage) }
        return try body(UnsafeMutableRawBufferPointer(start: storage.memory, count: storage.count))
    }

    /// Appends a byte.
    @inline(__always)
    public mutating func append(_ byte: UInt8) {
        makeRoom(for: 1)
        storage.memory[storage.count] = byte
        storage.count += 1
    }

    /// Appends bytes.
    public mutating func append(_ bytes: UnsafeRawBufferPointer) {
        guard let source = bytes.baseAddress, !bytes.isEmpty else { return }
        makeRoom(for: bytes.count)
        UnsafeMutableRawPointer(storage.memory + storage.count).copyMemory(
            from: source, byteCount: bytes.count)
        storage.count += bytes.count
    }

    /// Appends bytes.
    public mutating func append(contentsOf bytes: some Sequence<UInt8>) {
        let isDone: Void? = bytes.withContiguousStorageIfAvailable { append(UnsafeRawBufferPointer($0)) }
        if isDone != nil { return }
        for byte in bytes { append(byte) }
    }

    /// Appends at most `capacity` bytes in place. `fill` writes them and returns their number.
    public mutating func append(capacity: Int, filledBy fill: (UnsafeMutableBufferPointer<UInt8>) -> Int) {
        makeRoom(for: capacity)
        let free = UnsafeMutableBufferPointer(start: storage.memory + storage.count, count: capacity)
        free.initialize(repeating: 0)
        let count = fill(free)
        precondition((0...capacity).contains(count), "the filled bytes exceed the capacity")
        storage.count += count
    }

    /// Makes room for `capacity` bytes in total.
    public mutating func reserveCapacity(_ capacity: Int) { prepareToChange(capacity: capacity) }

    /// Removes the bytes and zeroes their memory.
    public mutating func removeAll(keepingCapacity keepsCapacity: Bool = false) {
        guard keepsCapacity, isKnownUniquelyReferenced(&storage) else { return storage = .empty }
        explicit_bzero(storage.memory, storage.count)
        storage.count = 0
    }

    /// Removes the first bytes. The others move to the front.
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

    /// Makes the memory unique to this value, with room for `capacity` bytes.
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
    /// Copies bytes into an array that is not zeroed, in one piece. The initialiser for sequences copies byte by byte.
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
    /// The number of bytes. The contents are never shown.
    public var description: String { "ZeroizingBuffer(\(count))" }
    public var customMirror: Mirror { Mirror(self, children: ["count": count]) }
}

extension UnsafeMutableRawBufferPointer {
    /// Zeroes the bytes. The compiler does not remove this.
    public func wipe() {
        guard let baseAddress else { return }
        explicit_bzero(baseAddress, count)
    }
}

/// A target for bytes: an array, or memory that is zeroed.
public protocol ByteOutput {
    mutating func append(_ byte: UInt8)
    mutating func append(_ bytes: UnsafeRawBufferPointer)
}

extension ByteOutput {
    /// Appends the bytes of a literal.
    public mutating func append(_ text: StaticString) {
        append(UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    /// Appends the UTF-8 form of a text.
    public mutating func append(utf8 text: String) {
        var text = text
        // One copy of bytes, also for short strings, which have no memory of their own.
        text.withUTF8 { append(UnsafeRawBufferPointer($0)) }
    }
}

extension Array: ByteOutput where Element == UInt8 {
    public mutating func append(_ bytes: UnsafeRawBufferPointer) { append(contentsOf: bytes) }
}

extension ZeroizingBuffer: ByteOutput {}

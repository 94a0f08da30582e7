/// A growing buffer that every statement reuses. Once it has grown it allocates nothing.
public struct ByteWriter: ~Copyable {
    /// Owned: allocated here, freed in `deinit`.
    private var base: UnsafeMutableRawPointer
    private var capacity: Int
    /// The number of bytes written.
    public private(set) var count = 0

    /// A buffer above this size is freed when it is emptied, so that a large value does not occupy memory permanently.
    private static let retainedCapacity = 64 << 10

    init(capacity: Int = 1_024) {
        self.capacity = capacity
        base = .allocate(byteCount: capacity, alignment: 16)
    }

    deinit { base.deallocate() }

    /// Appends an integer, most significant byte first.
    public mutating func write<Integer: FixedWidthInteger>(_ value: Integer) {
        let size = MemoryLayout<Integer>.size
        reserve(size)
        base.storeBytes(of: value.bigEndian, toByteOffset: count, as: Integer.self)
        count += size
    }

    /// Appends bytes unchanged.
    public mutating func write(_ bytes: UnsafeRawBufferPointer) {
        guard let source = bytes.baseAddress else { return }
        reserve(bytes.count)
        (base + count).copyMemory(from: source, byteCount: bytes.count)
        count += bytes.count
    }

    /// Overwrites four bytes that were written earlier, most significant first.
    mutating func overwrite(_ value: Int32, at offset: Int) {
        precondition(offset >= 0 && offset + 4 <= count, "only what was written can be overwritten")
        base.storeBytes(of: value.bigEndian, toByteOffset: offset, as: Int32.self)
    }

    /// Returns the address of a written byte, valid until the next write.
    func address(at offset: Int) -> UnsafePointer<CChar> {
        UnsafePointer((base + offset).assumingMemoryBound(to: CChar.self))
    }

    /// Discards the content.
    mutating func removeAll() {
        count = 0
        guard capacity > Self.retainedCapacity else { return }
        base.deallocate()
        capacity = 1_024
        base = .allocate(byteCount: capacity, alignment: 16)
    }

    private mutating func reserve(_ additional: Int) {
        let needed = count + additional
        guard needed > capacity else { return }
        capacity = max(needed, capacity * 2)
        let grown = UnsafeMutableRawPointer.allocate(byteCount: capacity, alignment: 16)
        grown.copyMemory(from: base, byteCount: count)
        base.deallocate()
        base = grown
    }
}

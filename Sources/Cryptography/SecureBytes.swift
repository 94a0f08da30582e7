/// Secret bytes: zeroed with their last reference, compared in constant time, never printed.
///
/// The contents never change after initialisation, so copies share one allocation and the type is `Sendable`. It is
/// intentionally neither `Codable` nor `Hashable`: a secret leaves this type only through ``withUnsafeBytes(_:)``.
public struct SecureBytes: Sendable {
    private let storage: Storage

    /// Copies `source`. The caller still owns the original, and may zero it.
    public init(copying source: some ByteSource) {
        self = source.withContiguousBytes { bytes in
            SecureBytes(count: bytes.count) { $0.copyMemory(from: bytes) }
        }
    }

    /// Allocates `count` zeroed bytes and lets `initialize` fill them in place, so that no copy is left behind.
    public init<Failure: Error>(
        count: Int,
        initializingWith initialize: (UnsafeMutableRawBufferPointer) throws(Failure) -> Void
    ) throws(Failure) {
        try self.init(count: count, release: { $0.deallocate() }, initializingWith: initialize)
    }

    /// Creates secret bytes with a release function. A test inspects the memory there.
    init<Failure: Error>(
        count: Int,
        release: @escaping @Sendable (UnsafeMutableRawBufferPointer) -> Void,
        initializingWith initialize: (UnsafeMutableRawBufferPointer) throws(Failure) -> Void
    ) throws(Failure) {
        // The storage owns the memory before `initialize` can throw.
        let storage = Storage(count: count, release: release)
        defer { extendLifetime(storage) }
        try initialize(storage.memory)
        self.storage = storage
    }

    /// The number of bytes.
    public var count: Int { storage.memory.count }

    /// True when there are no bytes.
    public var isEmpty: Bool { storage.memory.isEmpty }

    /// Calls `body` with the bytes; the buffer is valid only until `body` returns.
    public func withUnsafeBytes<Result, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        // The buffer does not keep the storage alive, and the optimiser may release it after its last use.
        defer { extendLifetime(storage) }
        return try body(UnsafeRawBufferPointer(storage.memory))
    }
}

extension SecureBytes: ByteSource {
    public func withContiguousBytes<Result, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try withUnsafeBytes(body)
    }
}

extension SecureBytes: Equatable {
    /// Compares in time that depends on the lengths only.
    public static func == (left: SecureBytes, right: SecureBytes) -> Bool {
        constantTimeEquals(left, right)
    }
}

extension SecureBytes: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    public var description: String { "SecureBytes(redacted)" }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension SecureBytes {
    /// Owns the allocation.
    ///
    /// `@unchecked Sendable` is safe: `init` and the end of `SecureBytes.init` write the memory, while one thread holds
    /// the only reference. After that it is only read, until `deinit`, which runs once and alone.
    private final class Storage: @unchecked Sendable {
        let memory: UnsafeMutableRawBufferPointer
        private let release: @Sendable (UnsafeMutableRawBufferPointer) -> Void

        init(count: Int, release: @escaping @Sendable (UnsafeMutableRawBufferPointer) -> Void) {
            precondition(count >= 0, "a number of bytes is not negative")
            memory = .allocate(byteCount: count, alignment: 16)
            wipe(memory)
            self.release = release
        }

        deinit {
            wipe(memory)
            release(memory)
        }
    }
}

extension [UInt8] {
    /// Zeroes the bytes of an array that has held a secret, which the compiler does not remove.
    ///
    /// Copies that share the array's memory keep their bytes, because this array is copied first.
    public mutating func zero() { withUnsafeMutableBytes { wipe($0) } }
}

/// Compares two byte strings in time that depends on their lengths only.
///
/// Returns false at once for different lengths: the length of a secret is not secret.
public func constantTimeEquals(_ left: some ByteSource, _ right: some ByteSource) -> Bool {
    left.withContiguousBytes { left in
        right.withContiguousBytes { right in
            guard left.count == right.count else { return false }
            // An empty buffer may have no base address, and the C function must not receive a null pointer.
            guard let leftBase = left.baseAddress, let rightBase = right.baseAddress else { return true }
            return equalsInConstantTime(leftBase, rightBase, left.count)
        }
    }
}

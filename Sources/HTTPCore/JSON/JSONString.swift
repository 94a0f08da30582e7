/// A string of a JSON document as UTF-8 bytes. It is a slice of the document, so a megabyte of base64 is not copied.
///
/// A key in it is only in memory that is zeroed at its release. Two strings are equal when their bytes are, without
/// Unicode normalisation.
public struct JSONString: Sendable {
    private let storage: ZeroizingBuffer
    private let start: UInt32
    private let end: UInt32

    /// Creates a slice of `storage` that is valid UTF-8. A document is shorter than 4 GiB.
    package init(storage: ZeroizingBuffer, range: Range<Int>) {
        self.storage = storage
        start = UInt32(range.lowerBound)
        end = UInt32(range.upperBound)
    }

    public init(_ string: String) {
        self.init(storage: ZeroizingBuffer(string.utf8), range: 0..<string.utf8.count)
    }

    /// Takes ASCII bytes, such as base64, unchanged. A byte above 0x7F is a programming error.
    public init(ascii bytes: [UInt8]) {
        precondition(bytes.allSatisfy { $0 < 0x80 }, "these bytes are ASCII")
        self.init(storage: ZeroizingBuffer(bytes), range: 0..<bytes.count)
    }

    /// The bytes, without a copy.
    public var utf8: Slice<ZeroizingBuffer> { storage[Int(start)..<Int(end)] }

    /// The number of UTF-8 bytes.
    public var count: Int { Int(end - start) }

    public var isEmpty: Bool { start == end }

    /// The text, copied.
    public var string: String { withUTF8 { String(decoding: $0, as: UTF8.self) } }

    /// Calls `body` with the bytes, without a copy.
    public func withUTF8<Result, Failure: Error>(
        _ body: (UnsafeBufferPointer<UInt8>) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try storage.withUnsafeBytes { bytes throws(Failure) in
            try body(UnsafeRawBufferPointer(rebasing: bytes[Int(start)..<Int(end)]).assumingMemoryBound(to: UInt8.self))
        }
    }
}

extension JSONString: Hashable {
    public static func == (left: JSONString, right: JSONString) -> Bool {
        left.count == right.count && left.withUTF8 { left in right.withUTF8 { left.elementsEqual($0) } }
    }

    public func hash(into hasher: inout Hasher) {
        withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    }

    /// Compares with text, without creating a `String`.
    public static func == (left: JSONString, right: String) -> Bool {
        left.count == right.utf8.count && left.withUTF8 { $0.elementsEqual(right.utf8) }
    }
}

extension JSONString: ExpressibleByStringLiteral {
    public init(stringLiteral value: String) {
        self.init(value)
    }
}

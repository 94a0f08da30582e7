/// How much memory a body takes at its peak, in quarters of its length.
public struct MemoryFactor: Sendable, Hashable {
    private let quarters: Int

    /// Text of which base64 was decoded (three quarters), and then, when the text has gone, three copies of what was
    /// decoded: its own, the parameter's and the driver's.
    public static let json = MemoryFactor(quarters: 9)
    /// The bytes, the parameter's copy and the driver's.
    public static let bytes = MemoryFactor(quarters: 12)
    /// Bytes that nothing is made of.
    public static let none = MemoryFactor(quarters: 4)

    private init(quarters: Int) { self.quarters = quarters }

    /// The peak of a body of so many bytes.
    public func peak(of count: Int) -> Int { count / 4 * quarters + count % 4 * quarters / 4 }
}

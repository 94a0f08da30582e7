/// The peak memory of a body, in quarters of its length.
public struct MemoryFactor: Sendable, Hashable {
    private let quarters: Int

    /// First the text with the bytes decoded from base64 (three quarters). Later, without the text, three copies of
    /// these bytes: the value's, the parameter's and the driver's.
    public static let json = MemoryFactor(quarters: 9)
    /// The bytes, the parameter's copy and the driver's copy.
    public static let bytes = MemoryFactor(quarters: 12)
    /// Bytes without further copies.
    public static let none = MemoryFactor(quarters: 4)

    private init(quarters: Int) { self.quarters = quarters }

    /// Returns the peak of a body of `count` bytes.
    public func peak(of count: Int) -> Int { count / 4 * quarters + count % 4 * quarters / 4 }
}

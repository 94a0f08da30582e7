/// Limits the size of a reply's head and trailers, against a hostile server.
struct FieldBudget {
    /// The maximum number of bytes of all fields of a reply together.
    static let limit = 256 << 10

    private var count = 0

    /// Returns true when this number of further bytes is within the limit.
    mutating func take(_ bytes: Int) -> Bool {
        count += bytes
        return count <= Self.limit
    }
}

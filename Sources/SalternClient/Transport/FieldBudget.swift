/// How much of a reply's head and trailers is taken: a server may be hostile.
struct FieldBudget {
    /// How long all fields of a reply may be together.
    static let limit = 256 << 10

    private var count = 0

    /// Whether so many bytes more still fit.
    mutating func take(_ bytes: Int) -> Bool {
        count += bytes
        return count <= Self.limit
    }
}

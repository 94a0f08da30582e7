internal import HTTPCore

/// Limits of a page of a listing.
enum PageSize {
    /// Number of items or changes.
    static let limits = 1...500
    private static let defaultLimit = 100
    /// Maximum of sealed bytes. A single item may have more.
    static let byteLimit: Int64 = 4 * 1_048_576
    /// Maximum of sealed bytes that are read and sent at once. Of a longer item, it is one part.
    static let windowByteLimit: Int64 = 131_072

    /// Reads the query parameter `limit`.
    static func limit(of request: Request) throws -> Int {
        let limit: Int = try request.query.optional("limit") ?? defaultLimit
        guard limits.contains(limit) else {
            throw Problem(
                .badRequest, "invalid_parameter", detail: "`limit` must be from 1 to \(limits.upperBound).",
                field: "limit", limit: limits.upperBound)
        }
        return limit
    }
}

internal import HTTPCore

/// How much a page of a listing may have.
enum PageSize {
    /// Items or changes.
    static let limits = 1...500
    private static let defaultLimit = 100
    /// Sealed bytes; a single item may have more.
    static let byteLimit: Int64 = 4 * 1_048_576
    /// Sealed bytes that are read and sent at once; of a single item that is longer, a part.
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

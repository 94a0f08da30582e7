internal import HTTPCore

/// A purchase receipt as an app got it from a store: text that nobody here reads.
struct Receipt: Sendable {
    let text: String

    /// The longest receipt in bytes of UTF-8.
    static let byteLimit = 65_536
    /// The longest body, in bytes, of a request that carries one: every character may be written as an escape.
    static let requestLimit = 6 * byteLimit + 1_024

    /// Reads 1 to 65,536 bytes of UTF-8 without NUL, which PostgreSQL does not store.
    init(json: JSONValue) throws(Problem) {
        let text = try json.text()
        guard (1...Self.byteLimit).contains(text.count), !text.utf8.contains(0) else {
            throw Problem(
                .unprocessableContent, "invalid_receipt",
                detail: "A receipt must have 1 to 65,536 bytes of UTF-8 without NUL.", limit: Self.byteLimit)
        }
        self.text = text.string
    }
}

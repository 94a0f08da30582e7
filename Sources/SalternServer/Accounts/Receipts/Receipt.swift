internal import HTTPCore

/// A purchase receipt that an app received from a store. The server does not interpret the text.
struct Receipt: Sendable {
    let text: String

    /// Maximum length in bytes of UTF-8.
    static let byteLimit = 65_536
    /// Maximum body of a request with a receipt, in bytes. JSON may escape every character.
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

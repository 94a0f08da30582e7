/// A PostgreSQL URL whose user and database can be exchanged.
struct DatabaseURL: CustomStringConvertible {
    private let prefix: String
    private let host: String
    private let query: String
    private let user: String

    /// What is wrong with a URL.
    struct Malformed: Error, CustomStringConvertible {
        let description = "SALTERN_TEST_DATABASE_URL has to look like postgresql://USER@HOST:PORT/DATABASE"
    }

    /// Reads `postgresql://[user[:password]@]host[:port][/database][?parameters]`.
    init(_ text: String) throws {
        guard let schemeEnd = text.firstRange(of: "://") else { throw Malformed() }
        prefix = String(text[..<schemeEnd.upperBound])
        var rest = text[schemeEnd.upperBound...]
        query = rest.firstIndex(of: "?").map { String(rest[$0...]) } ?? ""
        rest = rest.prefix { $0 != "?" }
        let authority = rest.prefix { $0 != "/" }
        if let at = authority.lastIndex(of: "@") {
            user = String(authority[..<at])
            host = String(authority[authority.index(after: at)...])
        } else {
            user = ""
            host = String(authority)
        }
    }

    /// The server's name and port; nil when it is not reached over TCP.
    var node: (name: String, port: Int)? {
        let parts = host.split(separator: ":")
        guard parts.count == 2, let port = Int(parts[1]) else { return nil }
        return (String(parts[0]), port)
    }

    /// The same server as another database, and as another user if one is given.
    func with(database: String, credentials: String? = nil) -> String {
        let user = credentials ?? user
        return prefix + (user.isEmpty ? "" : user + "@") + host + "/" + database + query
    }

    var description: String { "DatabaseURL(redacted)" }
}

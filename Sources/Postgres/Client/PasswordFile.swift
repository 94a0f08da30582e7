internal import Glibc

/// The file of passwords that libpq would read, when it would refuse to: it says so on standard error by itself, once for
/// each connection and between whatever stands there.
struct PasswordFile {
    let path: String
    /// Whether somebody has named it, rather than it being where it always is.
    let isNamed: Bool

    /// A path at which there can be no file.
    static let nowhere = "/dev/null/none"

    /// - Parameters:
    ///   - options: What is in the connection string.
    ///   - variable: Reads a variable of the process.
    init?(_ options: [(keyword: String, value: String)], variable: (String) -> String?) {
        func option(_ keyword: String) -> String? { options.last { $0.keyword == keyword }?.value }
        // It is looked for where no password is given; one of a service is libpq's to find.
        for password in [option("password"), variable("PGPASSWORD")] where password?.isEmpty == false { return nil }
        guard option("service") == nil, variable("PGSERVICE") == nil else { return nil }
        if let named = [option("passfile"), variable("PGPASSFILE")].compactMap(\.self).first(where: { !$0.isEmpty }) {
            path = named
            isNamed = true
        } else if let home = variable("HOME") {
            path = home + "/.pgpass"
            isNamed = false
        } else {
            return nil
        }
    }

    /// Why libpq would not read it; nil when it would, or when there is none.
    var refusal: String? {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        if status.st_mode & S_IFMT != S_IFREG { return "it is no plain file" }
        return status.st_mode & 0o077 == 0 ? nil : "others than its owner can read or write it: run chmod 600 on it"
    }

    /// What libpq is told in place of `options`.
    /// - Throws: ``PostgresError/configuration(_:)`` when somebody has named a file that libpq would refuse.
    static func settle(
        _ options: [(keyword: String, value: String)],
        variable: (String) -> String? = { getenv($0).map { String(cString: $0) } }
    ) throws(PostgresError) -> [(keyword: String, value: String)] {
        guard let file = PasswordFile(options, variable: variable), let refusal = file.refusal else { return options }
        if file.isNamed { throw .configuration("the password file \(file.path) is of no use: \(refusal)") }
        return options.filter { $0.keyword != "passfile" } + [("passfile", nowhere)]
    }
}

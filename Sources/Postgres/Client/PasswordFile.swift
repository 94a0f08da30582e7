internal import Glibc

/// The password file that libpq would read, with its permissions checked beforehand.
///
/// libpq itself reports a bad file on standard error, for each connection and in the middle of other output.
struct PasswordFile {
    let path: String
    /// True if a setting names the file; false for the default path.
    let isNamed: Bool

    /// A path at which no file can exist.
    static let nowhere = "/dev/null/none"

    /// - Parameters:
    ///   - options: The options of the connection string.
    ///   - variable: Reads an environment variable.
    init?(_ options: [(keyword: String, value: String)], variable: (String) -> String?) {
        func option(_ keyword: String) -> String? { options.last { $0.keyword == keyword }?.value }
        // libpq reads the file only if no password is given. It resolves services itself.
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

    /// The reason why libpq would reject the file; nil if it would read it, or if there is none.
    var refusal: String? {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        if status.st_mode & S_IFMT != S_IFREG { return "it is no plain file" }
        return status.st_mode & 0o077 == 0 ? nil : "others than its owner can read or write it: run chmod 600 on it"
    }

    /// Returns the options with which to replace `options`.
    /// - Throws: ``PostgresError/configuration(_:)`` when a setting names a file that libpq would reject.
    static func settle(
        _ options: [(keyword: String, value: String)],
        variable: (String) -> String? = { getenv($0).map { String(cString: $0) } }
    ) throws(PostgresError) -> [(keyword: String, value: String)] {
        guard let file = PasswordFile(options, variable: variable), let refusal = file.refusal else { return options }
        if file.isNamed { throw .configuration("the password file \(file.path) is of no use: \(refusal)") }
        return options.filter { $0.keyword != "passfile" } + [("passfile", nowhere)]
    }
}

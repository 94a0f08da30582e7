extension PostgresConfiguration {
    /// The connection arguments for PostgreSQL's own programs.
    ///
    /// Every user of the machine can read a program's arguments, so secrets go into its environment.
    public struct ProgramConnection: Sendable {
        /// The value of `--dbname`: everything but the password, in keyword form.
        public let string: String
        /// The password in the URL, if any, for `PGPASSWORD`.
        public let password: String?
    }

    /// The connection for PostgreSQL's own programs.
    public var programConnection: ProgramConnection {
        // Without a limit they wait for an unresponsive address as long as the kernel does.
        let shown =
            options.filter { $0.keyword != "password" && $0.keyword != "connect_timeout" }
            + [(keyword: "connect_timeout", value: String(connectTimeout.components.seconds))]
        let words = shown.map { option in "\(option.keyword)='\(Self.quoted(option.value))'" }
        return ProgramConnection(string: words.joined(separator: " "), password: value(of: "password"))
    }

    /// The role of the connection; nil if the string names none.
    public var user: String? { value(of: "user") }

    /// The name of the database. Without one, PostgreSQL uses the name of the role.
    public var databaseName: String? { value(of: "dbname") ?? user }

    private func value(of keyword: String) -> String? { options.last { $0.keyword == keyword }?.value }

    private static func quoted(_ value: String) -> String {
        String(value.flatMap { $0 == "'" || $0 == "\\" ? ["\\", $0] : [$0] })
    }
}

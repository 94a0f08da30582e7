extension PostgresConfiguration {
    /// How a program of PostgreSQL's own is told to connect: its words are seen by every user of the machine, so what is
    /// secret goes into its environment.
    public struct ProgramConnection: Sendable {
        /// For `--dbname`: everything but the password, in keyword form.
        public let string: String
        /// The password, when there is one in the URL, for `PGPASSWORD`.
        public let password: String?
    }

    /// The connection for PostgreSQL's own programs.
    public var programConnection: ProgramConnection {
        // Without a limit they wait for an address that swallows what is sent to it as long as the kernel does.
        let shown =
            options.filter { $0.keyword != "password" && $0.keyword != "connect_timeout" }
            + [(keyword: "connect_timeout", value: String(connectTimeout.components.seconds))]
        let words = shown.map { option in "\(option.keyword)='\(Self.quoted(option.value))'" }
        return ProgramConnection(string: words.joined(separator: " "), password: value(of: "password"))
    }

    /// The role that it connects as; nil when the string names none.
    public var user: String? { value(of: "user") }

    /// The database; PostgreSQL takes the one that is called like the role when the string names none.
    public var databaseName: String? { value(of: "dbname") ?? user }

    private func value(of keyword: String) -> String? { options.last { $0.keyword == keyword }?.value }

    private static func quoted(_ value: String) -> String {
        String(value.flatMap { $0 == "'" || $0 == "\\" ? ["\\", $0] : [$0] })
    }
}

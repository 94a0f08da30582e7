internal import CLibPQ
internal import Glibc

extension PostgresConfiguration {
    /// Checks the options with libpq, which does so only when it connects: here, to sockets in a folder that cannot
    /// exist.
    /// - Throws: ``PostgresError/configuration(_:)`` when no server could be connected to with them.
    static func check(_ options: [(keyword: String, value: String)]) throws(PostgresError) {
        func count(_ keyword: String) -> Int {
            let value = options.last { $0.keyword == keyword }?.value ?? ""
            return value.isEmpty ? 0 : value.count { $0 == "," } + 1
        }
        let (hosts, addresses) = (count("host"), count("hostaddr"))
        guard hosts == 0 || addresses == 0 || hosts == addresses else {
            throw .configuration(ConnectionFailure.option("host").description)
        }
        let isElsewhere =
            options.contains { $0.keyword == "service" }
            || ["PGHOST", "PGHOSTADDR", "PGSERVICE"].contains { (name: String) in getenv(name) != nil }
        // Options from elsewhere are checked when a connection is opened.
        if isElsewhere, hosts == 0 || getenv("PGHOSTADDR") != nil { return }
        let places = Array(repeating: "/dev/null", count: max(hosts, addresses, 1)).joined(separator: ",")
        let others = options.filter { $0.keyword != "host" && $0.keyword != "hostaddr" }
        guard let handle = ConnectionHandle(starting: others + [("host", places)]) else { return }
        let message = String(cString: PQerrorMessage(handle.pointer))
        guard let keyword = ConnectionFailure.unknownOption(in: message) else { return }
        throw .configuration(ConnectionFailure.option(keyword).description)
    }
}

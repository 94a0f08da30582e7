public import Postgres

extension PostgresConfiguration {
    /// A configuration whose waits no test reaches, however busy the machine is.
    public static func patient(_ url: String) throws(PostgresError) -> PostgresConfiguration {
        var configuration = try PostgresConfiguration(url)
        configuration.becomePatient()
        return configuration
    }

    /// Raises every limit of a wait above what a busy machine needs.
    public mutating func becomePatient() {
        acquireTimeout = .seconds(120)
        connectTimeout = .seconds(60)
        statementTimeout = .seconds(120)
        lockTimeout = .seconds(60)
        commitPatience = .seconds(120)
        silenceTimeout = .seconds(180)
    }
}

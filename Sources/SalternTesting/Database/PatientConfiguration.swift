public import Postgres

extension PostgresConfiguration {
    /// A configuration whose waits no test reaches, however busy the machine is.
    public static func patient(_ url: String) throws(PostgresError) -> PostgresConfiguration {
        var configuration = try PostgresConfiguration(url)
        configuration.acquireTimeout = .seconds(120)
        configuration.connectTimeout = .seconds(60)
        configuration.statementTimeout = .seconds(120)
        configuration.lockTimeout = .seconds(60)
        configuration.commitPatience = .seconds(120)
        configuration.silenceTimeout = .seconds(180)
        return configuration
    }
}

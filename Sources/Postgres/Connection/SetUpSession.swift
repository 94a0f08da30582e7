/// The first statement of every session: its limits and search path.
///
/// One round trip of ordinary SQL, because poolers between client and server refuse or ignore start-up options.
struct SetUpSession: Statement {
    typealias Row = Void

    static let sql = """
        SELECT set_config('statement_timeout', $1, false), set_config('lock_timeout', $2, false),
            set_config('idle_in_transaction_session_timeout', $3, false), set_config('search_path', $4, false)
        """

    let configuration: PostgresConfiguration

    func bind(to parameters: inout Parameters) {
        parameters.append(Self.milliseconds(configuration.statementTimeout))
        parameters.append(Self.milliseconds(configuration.lockTimeout))
        parameters.append(Self.milliseconds(configuration.idleInTransactionTimeout))
        parameters.append(configuration.searchPath)
    }

    /// PostgreSQL reads a number without unit as milliseconds, and 0 as "no limit".
    private static func milliseconds(_ duration: Duration) -> String {
        String(max(0, (duration.microseconds + 999) / 1_000))
    }
}

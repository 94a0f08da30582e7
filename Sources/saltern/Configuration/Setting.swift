import Foundation

/// A setting of `saltern`: an environment variable, or the file that its name with `_FILE` names.
///
/// ``Settings`` reads no other variables. A raw value has the cells of its row in docs/admin/configure.md, in Markdown:
/// name, default or `required`, values, and meaning. `saltern serve --help` prints the row, and a fifth cell where a
/// terminal needs more, because it has no links.
enum Setting: String, CaseIterable, Sendable, CustomStringConvertible {
    case databaseURL = """
        SALTERN_DATABASE_URL | required | URL or keywords; several hosts allowed | PostgreSQL, as the server's role | \
        Version 15 or newer. The role only reads and writes rows
        """
    case ownerDatabaseURL = """
        SALTERN_OWNER_DATABASE_URL | that of the server | URL or keywords | \
        The schema owner, for all database commands except `serve` and `purge`
        """
    case superuserDatabaseURL = """
        SALTERN_SUPERUSER_DATABASE_URL | `none` | URL or keywords | \
        A role that may create roles, for `saltern restore` only
        """
    case databasePooling = """
        SALTERN_DATABASE_POOLING | `session` | `session`, `transaction` | \
        `transaction` behind a pooler in that mode: [PgBouncer](proxies.md#pgbouncer) | \
        Version 1.21 or newer
        """
    case failover = """
        SALTERN_FAILOVER | `asynchronous` | `asynchronous`, `synchronous` | \
        `synchronous` if [a failover loses no commit](high-availability.md#failover-without-loss)
        """
    case readConnections = "SALTERN_READ_CONNECTIONS | `4` | 1 to 64 | Connections for reading, for each loop"
    case commitConnections = """
        SALTERN_COMMIT_CONNECTIONS | `2` | 1 to 64 | The same for writing. Transactions open up to 4 more | \
        Concurrent writes share a commit
        """
    case allowUnsafeDatabase = """
        SALTERN_ALLOW_UNSAFE_DATABASE | `off` | `on`, `off` | \
        For tests: accept `fsync`, `full_page_writes` or `synchronous_commit` off, `default_transaction_read_only` on, \
        or a default isolation other than read committed | \
        Such a database can lose commits
        """

    case saltPrefix = """
        SALTERN_SALT_PREFIX | required | 1 to 255 bytes without spaces | \
        Site's part of every salt, with its colon. **Fixed for the life of a database** | \
        Example: com.example.notes:
        """
    case serviceName = "SALTERN_SERVICE_NAME | `Saltern` | 1 to 128 bytes | Name in `GET /v1/service`"
    case showVersion = "SALTERN_SHOW_VERSION | `off` | `on`, `off` | Includes the `version` in `GET /v1/service`"
    case registration = """
        SALTERN_REGISTRATION | `closed` | `open`, `invite`, `closed` | \
        Registration for all, with an [invite](operate.md#invites), or for none
        """
    case kdfMinimumIterations = """
        SALTERN_KDF_MINIMUM_ITERATIONS | `600000` | 10,000 to 10,000,000 | Fewest iterations of new KDF parameters
        """
    case kdfDefaultIterations = """
        SALTERN_KDF_DEFAULT_ITERATIONS | `600000`, or the minimum if higher | the minimum to 10,000,000 | \
        Iterations recommended to clients
        """
    case sessionIdleTimeout = "SALTERN_SESSION_IDLE_TIMEOUT | `30d` | `61s` to `3650d` | Ends unused sessions"
    case sessionLifetime = """
        SALTERN_SESSION_LIFETIME | `365d`, or the idle timeout if longer | the idle timeout to `3650d` | \
        Ends sessions this long after log-in
        """
    case tombstoneRetention = """
        SALTERN_TOMBSTONE_RETENTION | `90d` | `1d` to `3650d` | \
        Time for which deletions sync. Devices away for longer list everything
        """
    case eventRetention = """
        SALTERN_EVENT_RETENTION | `400d` | `1d` to `3650d` | Time for which security logs keep entries
        """
    case passkeysRPID = """
        SALTERN_PASSKEYS_RP_ID | `off` | off, or a domain name in lower case | \
        Domain name of [passkeys](../passkeys.md) | \
        Example: example.org
        """
    case passkeysOrigins = """
        SALTERN_PASSKEYS_ORIGINS | `none`: `https://` and the domain name | origins, separated by commas | \
        Sites and apps that may use them | \
        Origins with https, or android:apk-key-hash:…
        """
    case opaqueFormat = "SALTERN_OPAQUE_FORMAT | `on` | `on`, `off` | Accepts sealed bytes without a known structure"
    case actor = """
        SALTERN_ACTOR | the user of the operating system | 1 to 128 characters | \
        Admin's name in the [audit log](operate.md#audit-log), for commands
        """

    case anonymousShares = """
        SALTERN_ANONYMOUS_SHARES | `off` | `on`, `off` | Allows [shares](operate.md#shares) without an account | \
        They are small, and last at most 7 days
        """
    case anonymousSharesLimit = "SALTERN_ANONYMOUS_SHARES_LIMIT | `1000` | 0 to 100,000 | Maximum number of those"
    case appleAppIDs = """
        SALTERN_APPLE_APP_IDS | `none` | `TEAMID.bundle.id`, separated by commas | Apple apps that open share links
        """
    case androidApps = """
        SALTERN_ANDROID_APPS | `none` | `package=SHA-256 of the signing certificate`, separated by commas | \
        The same for Android (`AB:CD:…`). A package may occur twice
        """
    case appStoreID = "SALTERN_APP_STORE_ID | `none` | a number | App that Safari offers on the share page"

    case tokenIssuer = """
        SALTERN_TOKEN_ISSUER | `none` | `https://HOST` or `https://HOST:PORT` | \
        The server's origin in tokens, as services reach it
        """
    case signingKeyFile = """
        SALTERN_SIGNING_KEY_FILE | `none` | file | [Signing keys](../services.md#rotate-signing-keys) | \
        See saltern signing-key create
        """
    case tokenAudiences = """
        SALTERN_TOKEN_AUDIENCES | `none` | \
        names, separated by commas; each may have `=account`, `=userid` or `=account+userid` | \
        [Audiences](../services.md#set-up-identity-tokens) | \
        Example: billing,push=account
        """
    case tokenLifetime = "SALTERN_TOKEN_LIFETIME | `5m` | `1m` to `1h` | Time for which a token is valid"

    case allowedOrigins = """
        SALTERN_ALLOWED_ORIGINS | `none` | origins such as `https://app.example.com`, separated by commas | \
        Web pages that may use the API
        """

    case destinationCA = """
        SALTERN_DESTINATION_CA | `none`: the system's | certificates in PEM | \
        Authorities of [receivers of events](../events.md). Use `SALTERN_DESTINATION_CA_FILE`
        """

    case listen = "SALTERN_LISTEN | `127.0.0.1:8443` | `HOST:PORT` | Address or name to serve"
    case tlsDirectory = """
        SALTERN_TLS_DIRECTORY | `tls` | folder | [Certificate and keys](certificates-and-keys.md) | \
        Files: certificate.pem, key.pem and backup-key.pem
        """
    case tlsMinimumVersion = """
        SALTERN_TLS_MINIMUM_VERSION | `1.3` | `1.3`, `1.2` | `1.2` (with AEAD suites) for old clients
        """
    case masterKeyFile = """
        SALTERN_MASTER_KEY_FILE | required | file | [Master key](certificates-and-keys.md#master-key) | \
        It seals secrets in the database: see saltern master-key create
        """
    case strictTransportSecurity = """
        SALTERN_STRICT_TRANSPORT_SECURITY | `365d` | `1s` to `3650d`, or `off` | \
        `Strict-Transport-Security` for host names; not sent to `localhost` or addresses | \
        Browsers require HTTPS for this time
        """
    case trustedProxies = """
        SALTERN_TRUSTED_PROXIES | `none` | addresses and blocks | \
        [Proxies](proxies.md#client-addresses) whose `X-Forwarded-For` counts
        """
    case proxyProtocol = """
        SALTERN_PROXY_PROTOCOL | `none` | addresses and blocks | \
        Proxies that send [PROXY protocol](proxies.md#proxy-protocol) version 2 | \
        They pass TLS through (send-proxy-v2)
        """
    case metricsListen = """
        SALTERN_METRICS_LISTEN | `off` | `HOST:PORT` | Address for [Prometheus](monitor.md#metrics) | \
        Plain HTTP on a loopback address, else TLS with the server's certificate
        """
    case handoverSocket = """
        SALTERN_HANDOVER_SOCKET | `off` | path of 1 to 99 bytes | \
        Unix socket for an [upgrade without interruption](upgrade.md#handover-without-a-balancer) | \
        The next server of the same user with this path takes over
        """

    case rateLimits = """
        SALTERN_RATE_LIMITS | `on` | `on`, `off` or figures | [Rate limits](#rate-limits) | \
        Example: login=20/5,lookup=100/10. off is for benchmarks
        """
    case loops = """
        SALTERN_LOOPS | the number of cores | 1 to 256 | \
        Event loops, one thread each. At most 252 with `SALTERN_HANDOVER_SOCKET`
        """
    case maxConnections = """
        SALTERN_MAX_CONNECTIONS | `10000` | 1 to 1,000,000 | Client connections. Further ones receive 503
        """
    case maxConnectionsPerAddress = """
        SALTERN_MAX_CONNECTIONS_PER_ADDRESS | `2048` | 1 to 1,000,000 | \
        The same [of one address](#many-users-behind-one-address). Further ones are closed
        """
    case maxConcurrentRequests = """
        SALTERN_MAX_CONCURRENT_REQUESTS | `1024` | 1 to 100,000 | \
        Concurrent requests for each loop. Further ones receive 503
        """
    case keepAlive = "SALTERN_KEEP_ALIVE | `75s` | `1s` to `1h` | Idle time of a connection. Must exceed a proxy's"
    case drainTimeout = """
        SALTERN_DRAIN_TIMEOUT | `30s` | `0s` to `1h` | \
        Time to finish requests after SIGTERM; 5 s without a known account
        """
    case coreDumps = """
        SALTERN_CORE_DUMPS | `off` | `on`, `off` | \
        For developers: dumps and traces of the process, whose memory holds keys
        """
    case logLevel = "SALTERN_LOG_LEVEL | `info` | `debug`, `info`, `warning`, `error` | Least level of log lines"

    /// The headings of the handbook and of the help, each with its first setting.
    static let headings: KeyValuePairs<String, Setting> = [
        "Database settings": .databaseURL,
        "Service settings": .saltPrefix,
        "Share settings": .anonymousShares,
        "Token settings": .tokenIssuer,
        "Web page settings": .allowedOrigins,
        "Event settings": .destinationCA,
        "Network and TLS settings": .listen,
        "Limits and process settings": .rateLimits,
    ]

    /// Variables of scripts and tests that commands accept in their environment.
    private static let scriptVariables: Set<String> = [
        "SALTERN_HOME", "SALTERN_CITUS", "SALTERN_TEST_DATABASE_URL", "SALTERN_TEST_HOME", "SALTERN_TEST_URL",
        "SALTERN_TEST_CERTIFICATE",
    ]

    /// Returns true if a setting or a script has the variable.
    static func isKnown(_ variable: String) -> Bool {
        scriptVariables.contains(variable) || allCases.contains { $0.description == variable }
    }

    /// The name of the variable.
    var description: String { cells[0] }

    /// The variable that names a file with the value.
    var fileVariable: String { "\(self)_FILE" }

    /// Returns true if the variable, or that of its file, is set.
    func isSet(in environment: [String: String]) -> Bool {
        environment[description] != nil || environment[fileVariable] != nil
    }

    /// The cells of the row.
    var cells: [String] { rawValue.components(separatedBy: " | ") }

    /// The settings in columns, for help.
    static var help: String { allCases.map(\.help).joined(separator: "\n") }

    private var help: String {
        let heading = Self.headings.first { $0.value == self }.map { "\($0.key):\n" } ?? ""
        var lines = ["  \(self)".padding(toLength: Self.indent, withPad: " ", startingAt: 0)]
        let text = "\(cells[1]) (\(cells[2])). \(cells[3...].joined(separator: ". "))"
            .replacing(#/\[([^\]]*)\]\([^)]*\)/#) { String($0.1) }
        for word in text.filter({ $0 != "`" && $0 != "*" }).split(separator: " ") {
            if lines[lines.count - 1].count + word.count >= 80 {
                lines.append(String(repeating: " ", count: Self.indent))
            }
            lines[lines.count - 1] += " " + word
        }
        return heading + lines.joined(separator: "\n")
    }

    private static let indent = 38
}

import CommandLineKit
import HTTPServer
import Postgres
import SalternServer
import TransportSecurity

/// The settings of `saltern serve`, read and checked as a whole.
///
/// | Variable | Meaning | Default |
/// | --- | --- | --- |
/// | `SALTERN_DATABASE_URL` | PostgreSQL, as the role that reads and writes rows | none |
/// | `SALTERN_DATABASE_POOLING` | `session`, or `transaction` behind a pooler in that mode | `session` |
/// | `SALTERN_SALT_PREFIX` | the site's part of every salt, for the life of the database | none |
/// | `SALTERN_MASTER_KEY_FILE` | the master key, readable by its owner alone | none |
/// | `SALTERN_LISTEN` | address of the API | `127.0.0.1:8443` |
/// | `SALTERN_TLS_DIRECTORY` | certificate.pem, key.pem, backup-key.pem | `tls` |
/// | `SALTERN_TLS_MINIMUM_VERSION` | `1.3` or `1.2` | `1.3` |
/// | `SALTERN_SERVICE_NAME` | name of the service | `Saltern` |
/// | `SALTERN_SHOW_VERSION` | `on`: `GET /v1/service` returns the version | `off` |
/// | `SALTERN_REGISTRATION` | `open`, `invite` or `closed` | `closed` |
/// | `SALTERN_KDF_DEFAULT_ITERATIONS` | iterations of new accounts | `600000`, or the minimum if that is higher |
/// | `SALTERN_KDF_MINIMUM_ITERATIONS` | minimum of new parameters | `600000` |
/// | `SALTERN_FAILOVER` | `asynchronous`, or `synchronous`: a failover loses nothing | `asynchronous` |
/// | `SALTERN_SESSION_IDLE_TIMEOUT` | maximum idle time of a session | `30d` |
/// | `SALTERN_SESSION_LIFETIME` | maximum age of a session | `365d` |
/// | `SALTERN_TOMBSTONE_RETENTION` | time for which deleted items still sync | `90d` |
/// | `SALTERN_EVENT_RETENTION` | retention of the security log | `400d` |
/// | `SALTERN_OPAQUE_FORMAT` | `on`: the format `opaque` is accepted | `on` |
/// | `SALTERN_ANONYMOUS_SHARES` | `on`: people without an account may create shares | `off` |
/// | `SALTERN_ANONYMOUS_SHARES_LIMIT` | maximum number of those shares | `1000` |
/// | `SALTERN_RATE_LIMITS` | `on`, `off`, or limits of each client address, as in `login=20/5` | `on` |
/// | `SALTERN_TRUSTED_PROXIES` | addresses and blocks with a trusted `X-Forwarded-For` | none |
/// | `SALTERN_PROXY_PROTOCOL` | addresses and blocks that send a header of the PROXY protocol | `none` |
/// | `SALTERN_APPLE_APP_IDS` | `TEAMID.bundle.id,…`: apps that open links to shares | none |
/// | `SALTERN_ANDROID_APPS` | `package=SHA256,…`: the same on Android | none |
/// | `SALTERN_PASSKEYS_RP_ID` | the domain name that passkeys belong to | off |
/// | `SALTERN_PASSKEYS_ORIGINS` | origins that may use them, separated by commas | `https://RP_ID` |
/// | `SALTERN_APP_STORE_ID` | the app that Safari offers on the page of a share | none |
/// | `SALTERN_TOKEN_ISSUER` | the server's origin in identity tokens | none: it signs no tokens |
/// | `SALTERN_SIGNING_KEY_FILE` | the keys that sign tokens, readable by their owner alone | none |
/// | `SALTERN_TOKEN_AUDIENCES` | `billing,push=account,…`: the audiences of tokens | none |
/// | `SALTERN_TOKEN_LIFETIME` | how long a token is valid | `5m` |
/// | `SALTERN_ALLOWED_ORIGINS` | `https://app.example.com,…`: web pages that may use the API | none |
/// | `SALTERN_DESTINATION_CA` | certificates in PEM that receivers of events are verified with | the system's |
/// | `SALTERN_LOOPS` | event loops (threads) | the number of cores |
/// | `SALTERN_READ_CONNECTIONS` | connections of each loop for requests that read | `4` |
/// | `SALTERN_COMMIT_CONNECTIONS` | connections of each loop for single requests that write | `2` |
/// | `SALTERN_ALLOW_UNSAFE_DATABASE` | `on`, for tests only: serves a database that may lose commits | `off` |
/// | `SALTERN_MAX_CONNECTIONS` | clients' connections in all | `10000` |
/// | `SALTERN_MAX_CONNECTIONS_PER_ADDRESS` | … from one address | `2048` |
/// | `SALTERN_MAX_CONCURRENT_REQUESTS` | simultaneous requests on one loop | `1024` |
/// | `SALTERN_KEEP_ALIVE` | maximum idle time of a connection | `75s` |
/// | `SALTERN_STRICT_TRANSPORT_SECURITY` | time for which browsers require HTTPS of the host, or `off` | `365d` |
/// | `SALTERN_DRAIN_TIMEOUT` | time for requests to finish after SIGTERM | `30s` |
/// | `SALTERN_HANDOVER_SOCKET` | Unix socket at which the next server takes over | off |
/// | `SALTERN_METRICS_LISTEN` | address of Prometheus metrics, with TLS unless it is a loopback address | off |
/// | `SALTERN_CORE_DUMPS` | `on`: core dumps and debuggers may read the process's memory with its secrets | off |
/// | `SALTERN_LOG_LEVEL` | `debug`, `info`, `warning` or `error` | `info` |
struct ServeConfiguration {
    private(set) var service: ServiceConfiguration
    var database: PostgresConfiguration
    let failover: FailoverKind
    let listen: SocketAddress
    let metricsListen: SocketAddress?
    /// The socket for takeovers, in both directions.
    let handoverSocket: String?
    private(set) var tls: TLSFiles
    let masterKeyFile: MasterKeyFile
    /// The file of the signing keys. Nil if the server signs no tokens.
    let signingKeyFile: SigningKeyFile?
    /// Certificates in PEM that replace the system's for receivers of events.
    let destinationAuthorities: [UInt8]?
    var http: HTTPServerConfiguration
    let loopCount: Int
    /// True to accept a database that may lose acknowledged commits.
    let allowsUnsafeDatabase: Bool
    let drainTimeout: Duration
    let logLevel: LogLevel

    /// The variables of all commands and scripts of the project.
    static let variables: Set<String> = [
        "SALTERN_DATABASE_URL", "SALTERN_OWNER_DATABASE_URL", "SALTERN_SUPERUSER_DATABASE_URL", "SALTERN_FAILOVER",
        "SALTERN_DATABASE_POOLING", "SALTERN_SALT_PREFIX", "SALTERN_MASTER_KEY_FILE", "SALTERN_LISTEN",
        "SALTERN_TLS_DIRECTORY", "SALTERN_TLS_MINIMUM_VERSION", "SALTERN_SERVICE_NAME", "SALTERN_SHOW_VERSION",
        "SALTERN_REGISTRATION", "SALTERN_ACTOR",
        "SALTERN_KDF_DEFAULT_ITERATIONS", "SALTERN_KDF_MINIMUM_ITERATIONS", "SALTERN_SESSION_IDLE_TIMEOUT",
        "SALTERN_SESSION_LIFETIME", "SALTERN_TOMBSTONE_RETENTION", "SALTERN_OPAQUE_FORMAT", "SALTERN_LOOPS",
        "SALTERN_APPLE_APP_IDS", "SALTERN_ANDROID_APPS", "SALTERN_APP_STORE_ID",
        "SALTERN_TOKEN_ISSUER", "SALTERN_TOKEN_AUDIENCES", "SALTERN_TOKEN_LIFETIME", "SALTERN_SIGNING_KEY_FILE",
        "SALTERN_ALLOWED_ORIGINS",
        "SALTERN_DESTINATION_CA",
        "SALTERN_PASSKEYS_RP_ID", "SALTERN_PASSKEYS_ORIGINS",
        "SALTERN_ANONYMOUS_SHARES", "SALTERN_ANONYMOUS_SHARES_LIMIT",
        "SALTERN_RATE_LIMITS",
        "SALTERN_TRUSTED_PROXIES", "SALTERN_PROXY_PROTOCOL", "SALTERN_EVENT_RETENTION",
        "SALTERN_READ_CONNECTIONS", "SALTERN_COMMIT_CONNECTIONS", "SALTERN_ALLOW_UNSAFE_DATABASE",
        "SALTERN_MAX_CONNECTIONS", "SALTERN_MAX_CONNECTIONS_PER_ADDRESS", "SALTERN_MAX_CONCURRENT_REQUESTS",
        "SALTERN_KEEP_ALIVE", "SALTERN_STRICT_TRANSPORT_SECURITY",
        ProcessLimits.dumpVariable,
        "SALTERN_HANDOVER_SOCKET",
        "SALTERN_DRAIN_TIMEOUT", "SALTERN_METRICS_LISTEN", "SALTERN_LOG_LEVEL", "SALTERN_HOME",
        "SALTERN_CITUS",
        "SALTERN_TEST_DATABASE_URL", "SALTERN_TEST_HOME", "SALTERN_TEST_URL", "SALTERN_TEST_CERTIFICATE",
    ]

    /// Reads the environment and the certificate.
    /// - Throws: ``CommandFailure`` with one message for each problem.
    init(_ environment: [String: String], coreCount: Int) throws(CommandFailure) {
        var settings = Settings(environment)
        var database = settings.serverDatabase()
        failover = settings.choice(
            "SALTERN_FAILOVER", ["asynchronous": .asynchronous, "synchronous": .synchronous], default: .asynchronous)
        let readers = settings.integer("SALTERN_READ_CONNECTIONS", in: 1...64, default: 4)
        let committers = settings.integer("SALTERN_COMMIT_CONNECTIONS", in: 1...64, default: 2)
        database?.readConnections = readers
        database?.commitConnections = committers
        database?.allowsSequentialScans = false
        listen = settings.listenAddress()
        metricsListen = settings.address("SALTERN_METRICS_LISTEN", orNothing: "off")
        if metricsListen == listen, listen.port != 0 {
            settings.note("SALTERN_METRICS_LISTEN is the address of SALTERN_LISTEN, and needs another port")
        }
        allowsUnsafeDatabase = settings.choice(
            "SALTERN_ALLOW_UNSAFE_DATABASE", ["on": true, "off": false], default: false)
        loopCount = settings.integer("SALTERN_LOOPS", in: 1...256, default: coreCount)
        handoverSocket = settings.text("SALTERN_HANDOVER_SOCKET", orNothing: "off")
        if let handoverSocket {
            if !(1...UnixSocket.pathLimit - 8).contains(handoverSocket.utf8.count) {
                settings.refuse(
                    "SALTERN_HANDOVER_SOCKET", handoverSocket,
                    mustBe: "off, or a path of 1 to \(UnixSocket.pathLimit - 8) bytes")
            }
            if loopCount >= HandoverMessage.descriptorLimit {
                settings.note("SALTERN_HANDOVER_SOCKET needs SALTERN_LOOPS below \(HandoverMessage.descriptorLimit)")
            }
        }
        drainTimeout = settings.duration("SALTERN_DRAIN_TIMEOUT", in: .zero ... .seconds(3_600), default: .seconds(30))
        _ = settings.choice(ProcessLimits.dumpVariable, ["on": true, "off": false], default: false)
        logLevel = settings.choice(
            "SALTERN_LOG_LEVEL", ["debug": .debug, "info": .info, "warning": .warning, "error": .error], default: .info)
        destinationAuthorities = settings.destinationAuthorities()
        let proxies = settings.trustedProxies()
        var http = settings.httpServer()
        http.trustedProxies = proxies
        http.proxyProtocolSenders = settings.proxyProtocolSenders()
        self.http = http
        let tls = settings.tlsFiles()
        let masterKeyFile = settings.masterKeyFile()
        let masterKey = masterKeyFile.flatMap { settings.masterKey($0) }
        // Without a key `finish` throws, so the random one never seals anything.
        var service = settings.service(pins: tls?.pins ?? PinSet(), masterKey: masterKey ?? .random())
        service.rateLimits = settings.rateLimits()
        service.trustedProxies = proxies
        service.appLinks = settings.appLinks()
        let (tokens, signingKeyFile) = settings.tokens()
        service.tokens = tokens
        service.origins = settings.allowedOrigins()
        service.passkeys = settings.passkeys()
        try settings.finish()
        guard let database, let tls, let masterKeyFile else { throw CommandFailure("the configuration is incomplete") }
        self.database = database
        self.tls = tls
        self.masterKeyFile = masterKeyFile
        self.signingKeyFile = signingKeyFile
        self.service = service
    }

    /// The maximum number of descriptors that the server needs.
    ///
    /// It includes clients' and database connections, those of every process, and files that are read again.
    var descriptorCount: Int {
        http.maximumConnections + http.maximumConnections / 20 + loopCount * (database.connectionCount + 12) + 64
    }

    /// The maximum number of database connections of a node.
    ///
    /// It includes those of its loops, twice during a handover, one of the migrator at the start, and one of a command.
    var databaseConnectionCount: Int {
        loopCount * database.connectionCount * (handoverSocket == nil ? 1 : 2) + 2
    }

    /// The remedy when fewer are available.
    static let moreConnections: StaticString = """
        raise max_connections or the CONNECTION LIMIT of its role and database, or lower SALTERN_LOOPS, \
        SALTERN_READ_CONNECTIONS or SALTERN_COMMIT_CONNECTIONS
        """

    /// Reads certificate, key, master key and signing keys again. Logs an unusable file, and still reads the others.
    /// - Returns: The files that could not be read.
    mutating func reload(_ log: Log) -> ReloadFailures {
        var failures = ReloadFailures()
        do throws(CertificateError) {
            tls = try tls.reloaded()
            log.write(.info, "certificate_reloaded")
        } catch {
            failures.certificate = true
            log.write(.error, "certificate_not_reloaded", ["error": OperatorText("\(error)")])
        }
        do throws(CommandFailure) {
            service.masterKey = try masterKeyFile.read()
            log.write(.info, "master_key_reloaded", ["active": service.masterKey.ids[0]])
        } catch {
            let messages = error.messages.joined(separator: "; ")
            failures.masterKey = true
            log.write(.error, "master_key_not_reloaded", ["error": OperatorText(messages)])
        }
        guard let signingKeyFile else { return failures }
        do throws(CommandFailure) {
            service.tokens.keys = try signingKeyFile.read()
            log.write(.info, "signing_keys_reloaded")
        } catch {
            failures.signingKeys = true
            log.write(
                .error, "signing_keys_not_reloaded",
                ["error": OperatorText(error.messages.joined(separator: "; "))])
        }
        return failures
    }
}

/// The files that could not be read at the last reload.
struct ReloadFailures: Equatable, Sendable {
    var certificate = false
    var masterKey = false
    var signingKeys = false
}

/// The served certificate and its source.
struct TLSFiles {
    let directory: CertificateDirectory
    let minimumVersion: TLSVersion
    let context: TLSServerContext
    let pins: PinSet
    /// The certificate's expiry, in seconds since the epoch.
    let notAfter: Int64

    /// Reads certificate, key and pins.
    init(directory: CertificateDirectory, minimumVersion: TLSVersion) throws(CertificateError) {
        self.directory = directory
        self.minimumVersion = minimumVersion
        context = try TLSServerContext(identity: directory.identity(), minimumVersion: minimumVersion)
        notAfter = try directory.notAfter()
        let pins = try directory.pins()
        self.pins = PinSet(active: [pins.active.description], backup: pins.backup.map { [$0.description] } ?? [])
    }

    /// Reads the same files again, after their replacement.
    func reloaded() throws(CertificateError) -> TLSFiles {
        try TLSFiles(directory: directory, minimumVersion: minimumVersion)
    }
}

extension Settings {
    /// Reads the server's address: `SALTERN_LISTEN`.
    mutating func listenAddress() -> SocketAddress {
        address("SALTERN_LISTEN") ?? SocketAddress(host: "127.0.0.1", port: 8_443)
    }

    /// - Parameter word: The value for no address, where that is allowed.
    mutating func address(_ name: String, orNothing word: String? = nil) -> SocketAddress? {
        guard let text = text(name), text != word else { return nil }
        if let address = SocketAddress(text) { return address }
        let choice = word.map { "\($0), or " } ?? ""
        refuse(name, text, mustBe: "\(choice)HOST:PORT, for example 127.0.0.1:8443 or [::]:8443")
        return nil
    }

    fileprivate mutating func httpServer() -> HTTPServerConfiguration {
        var http = HTTPServerConfiguration()
        http.maximumConnections = integer(
            "SALTERN_MAX_CONNECTIONS", in: 1...1_000_000, default: http.maximumConnections)
        http.maximumConnectionsPerAddress = integer(
            "SALTERN_MAX_CONNECTIONS_PER_ADDRESS", in: 1...1_000_000, default: http.maximumConnectionsPerAddress)
        http.maximumConcurrentRequestsPerLoop = integer(
            "SALTERN_MAX_CONCURRENT_REQUESTS", in: 1...100_000, default: http.maximumConcurrentRequestsPerLoop)
        http.idleDeadline = duration(
            "SALTERN_KEEP_ALIVE", in: .seconds(1) ... .seconds(3_600), default: http.idleDeadline)
        return http
    }

    /// Reads the value of `Strict-Transport-Security`; nil to send none.
    private mutating func strictTransportSecurity() -> String? {
        let name = "SALTERN_STRICT_TRANSPORT_SECURITY"
        let range = Duration.seconds(1) ... .seconds(86_400 * 3_650)
        var age = Duration.seconds(86_400 * 365)
        if let text = text(name) {
            if text == "off" { return nil }
            if let duration = OperatorTime.duration(text), range.contains(duration) {
                age = duration
            } else {
                refuse(name, text, mustBe: "off, or a time such as 365d, from \(OperatorTime.text(range))")
            }
        }
        return "max-age=\(age.components.seconds)"
    }

    /// Reads the folder of certificate and keys: `SALTERN_TLS_DIRECTORY`.
    mutating func certificateDirectory() -> CertificateDirectory {
        CertificateDirectory(path: text("SALTERN_TLS_DIRECTORY") ?? "tls")
    }

    /// Reads the oldest accepted TLS version: `SALTERN_TLS_MINIMUM_VERSION`.
    mutating func minimumTLSVersion() -> TLSVersion {
        choice("SALTERN_TLS_MINIMUM_VERSION", ["1.3": TLSVersion.version13, "1.2": .version12], default: .version13)
    }

    mutating func tlsFiles() -> TLSFiles? {
        let version = minimumTLSVersion()
        let directory = certificateDirectory()
        do throws(CertificateError) {
            return try TLSFiles(directory: directory, minimumVersion: version)
        } catch {
            note("SALTERN_TLS_DIRECTORY: \(error)")
            return nil
        }
    }

    fileprivate mutating func service(pins: PinSet, masterKey: MasterKey) -> ServiceConfiguration {
        let minimum = integer(
            "SALTERN_KDF_MINIMUM_ITERATIONS", in: KDFPolicy.absoluteMinimum...KDFPolicy.maximum, default: 600_000)
        let kdf = KDFPolicy(
            defaultIterations: integer(
                "SALTERN_KDF_DEFAULT_ITERATIONS", in: minimum...KDFPolicy.maximum, default: max(minimum, 600_000)),
            minimumIterations: minimum)
        let prefix = saltPrefix()
        let sessions = sessionPolicy()
        let configuration = ServiceConfiguration(
            name: serviceName(),
            version: choice("SALTERN_SHOW_VERSION", ["on": ShowVersion.version, "off": nil], default: nil),
            saltPrefix: prefix, masterKey: masterKey, kdf: kdf,
            registration: choice(
                "SALTERN_REGISTRATION", ["open": RegistrationMode.open, "invite": .invite, "closed": .closed],
                default: .closed),
            sessions: sessions,
            items: ItemPolicy(
                acceptsOpaque: choice("SALTERN_OPAQUE_FORMAT", ["on": true, "off": false], default: true)),
            shares: SharePolicy(
                acceptsAnonymous: choice("SALTERN_ANONYMOUS_SHARES", ["on": true, "off": false], default: false),
                anonymousLimit: integer("SALTERN_ANONYMOUS_SHARES_LIMIT", in: 0...100_000, default: 1_000)),
            purge: purgePolicy(), pins: pins, strictTransportSecurity: strictTransportSecurity())
        // An empty prefix has been reported.
        if !prefix.isEmpty { for finding in configuration.findings { note(finding) } }
        return configuration
    }

    private mutating func serviceName() -> String {
        guard let name = text("SALTERN_SERVICE_NAME") else { return "Saltern" }
        if name.utf8.count <= ServiceConfiguration.nameLimit { return name }
        refuse("SALTERN_SERVICE_NAME", name, mustBe: "1 to \(ServiceConfiguration.nameLimit) bytes long")
        return "Saltern"
    }

    /// - Returns: An empty text if there is no usable prefix.
    private mutating func saltPrefix() -> String {
        let prefix = requiredText(
            "SALTERN_SALT_PREFIX", "the site's part of every salt, such as com.example.notes: with its colon")
        if prefix.isEmpty || ServiceConfiguration.isSaltPrefix(prefix) { return prefix }
        refuse("SALTERN_SALT_PREFIX", prefix, mustBe: "1 to 255 bytes without spaces and control characters")
        return ""
    }
}

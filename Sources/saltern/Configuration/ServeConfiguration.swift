import CommandLineKit
import HTTPServer
import Postgres
import SalternServer
import TransportSecurity

/// The settings of `saltern serve`, read and checked as a whole.
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

    /// Reads the environment and the certificate.
    /// - Throws: ``CommandFailure`` with one message for each problem.
    init(_ environment: [String: String], coreCount: Int) throws(CommandFailure) {
        var settings = Settings(environment)
        var database = settings.serverDatabase()
        failover = settings.choice(
            .failover, ["asynchronous": .asynchronous, "synchronous": .synchronous], default: .asynchronous)
        let readers = settings.integer(.readConnections, in: 1...64, default: 4)
        let committers = settings.integer(.commitConnections, in: 1...64, default: 2)
        database?.readConnections = readers
        database?.commitConnections = committers
        database?.allowsSequentialScans = false
        listen = settings.listenAddress()
        metricsListen = settings.address(.metricsListen, orNothing: "off")
        if metricsListen == listen, listen.port != 0 {
            settings.note("\(Setting.metricsListen) is the address of \(Setting.listen), and needs another port")
        }
        allowsUnsafeDatabase = settings.choice(.allowUnsafeDatabase, ["on": true, "off": false], default: false)
        loopCount = settings.integer(.loops, in: 1...256, default: coreCount)
        handoverSocket = settings.text(.handoverSocket, orNothing: "off")
        if let handoverSocket {
            if !(1...UnixSocket.pathLimit - 8).contains(handoverSocket.utf8.count) {
                settings.refuse(
                    .handoverSocket, handoverSocket,
                    mustBe: "off, or a path of 1 to \(UnixSocket.pathLimit - 8) bytes")
            }
            if loopCount >= HandoverMessage.descriptorLimit {
                settings.note(
                    "\(Setting.handoverSocket) needs \(Setting.loops) below \(HandoverMessage.descriptorLimit)")
            }
        }
        drainTimeout = settings.duration(.drainTimeout, in: .zero ... .seconds(3_600), default: .seconds(30))
        _ = settings.allowsDumps()
        logLevel = settings.choice(
            .logLevel, ["debug": .debug, "info": .info, "warning": .warning, "error": .error], default: .info)
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
        var (identity, pins) = (try directory.identity(), try directory.pins())
        // A rotation in between has replaced the files.
        if pins.active != identity.certificate.pin {
            (identity, pins) = (try directory.identity(), try directory.pins())
        }
        context = try TLSServerContext(identity: identity, minimumVersion: minimumVersion)
        notAfter = identity.certificate.notAfter
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
        address(.listen) ?? SocketAddress(host: "127.0.0.1", port: 8_443)
    }

    /// - Parameter word: The value for no address, where that is allowed.
    mutating func address(_ setting: Setting, orNothing word: String? = nil) -> SocketAddress? {
        guard let text = text(setting), text != word else { return nil }
        if let address = SocketAddress(text) { return address }
        let choice = word.map { "\($0), or " } ?? ""
        refuse(setting, text, mustBe: "\(choice)HOST:PORT, for example 127.0.0.1:8443 or [::]:8443")
        return nil
    }

    fileprivate mutating func httpServer() -> HTTPServerConfiguration {
        var http = HTTPServerConfiguration()
        http.maximumConnections = integer(.maxConnections, in: 1...1_000_000, default: http.maximumConnections)
        http.maximumConnectionsPerAddress = integer(
            .maxConnectionsPerAddress, in: 1...1_000_000, default: http.maximumConnectionsPerAddress)
        http.maximumConcurrentRequestsPerLoop = integer(
            .maxConcurrentRequests, in: 1...100_000, default: http.maximumConcurrentRequestsPerLoop)
        http.idleDeadline = duration(.keepAlive, in: .seconds(1) ... .seconds(3_600), default: http.idleDeadline)
        return http
    }

    /// Reads the value of `Strict-Transport-Security`; nil to send none.
    private mutating func strictTransportSecurity() -> String? {
        let setting = Setting.strictTransportSecurity
        let range = Duration.seconds(1) ... .seconds(86_400 * 3_650)
        var age = Duration.seconds(86_400 * 365)
        if let text = text(setting) {
            if text == "off" { return nil }
            if let duration = OperatorTime.duration(text), range.contains(duration) {
                age = duration
            } else {
                refuse(setting, text, mustBe: "off, or a time such as 365d, from \(OperatorTime.text(range))")
            }
        }
        return "max-age=\(age.components.seconds)"
    }

    /// Reads the folder of certificate and keys: `SALTERN_TLS_DIRECTORY`.
    mutating func certificateDirectory() -> CertificateDirectory {
        CertificateDirectory(path: text(.tlsDirectory) ?? "tls")
    }

    /// Reads the oldest accepted TLS version: `SALTERN_TLS_MINIMUM_VERSION`.
    mutating func minimumTLSVersion() -> TLSVersion {
        choice(.tlsMinimumVersion, ["1.3": TLSVersion.version13, "1.2": .version12], default: .version13)
    }

    /// Reads the permission of core dumps and debuggers: `SALTERN_CORE_DUMPS`.
    mutating func allowsDumps() -> Bool { choice(.coreDumps, ["on": true, "off": false], default: false) }

    mutating func tlsFiles() -> TLSFiles? {
        let version = minimumTLSVersion()
        let directory = certificateDirectory()
        do throws(CertificateError) {
            return try TLSFiles(directory: directory, minimumVersion: version)
        } catch {
            note("\(Setting.tlsDirectory): \(error)")
            return nil
        }
    }

    fileprivate mutating func service(pins: PinSet, masterKey: MasterKey) -> ServiceConfiguration {
        let minimum = integer(
            .kdfMinimumIterations, in: KDFPolicy.absoluteMinimum...KDFPolicy.maximum, default: 600_000)
        let kdf = KDFPolicy(
            defaultIterations: integer(
                .kdfDefaultIterations, in: minimum...KDFPolicy.maximum, default: max(minimum, 600_000)),
            minimumIterations: minimum)
        let prefix = saltPrefix()
        let sessions = sessionPolicy()
        let configuration = ServiceConfiguration(
            name: serviceName(),
            version: choice(.showVersion, ["on": ShowVersion.version, "off": nil], default: nil),
            saltPrefix: prefix, masterKey: masterKey, kdf: kdf,
            registration: choice(
                .registration, ["open": RegistrationMode.open, "invite": .invite, "closed": .closed],
                default: .closed),
            sessions: sessions,
            items: ItemPolicy(
                acceptsOpaque: choice(.opaqueFormat, ["on": true, "off": false], default: true)),
            shares: SharePolicy(
                acceptsAnonymous: choice(.anonymousShares, ["on": true, "off": false], default: false),
                anonymousLimit: integer(.anonymousSharesLimit, in: 0...100_000, default: 1_000)),
            purge: purgePolicy(), pins: pins, strictTransportSecurity: strictTransportSecurity())
        // An empty prefix has been reported.
        if !prefix.isEmpty { for finding in configuration.findings { note(finding) } }
        return configuration
    }

    private mutating func serviceName() -> String {
        guard let name = text(.serviceName) else { return "Saltern" }
        if name.utf8.count <= ServiceConfiguration.nameLimit { return name }
        refuse(.serviceName, name, mustBe: "1 to \(ServiceConfiguration.nameLimit) bytes long")
        return "Saltern"
    }

    /// - Returns: An empty text if there is no usable prefix.
    private mutating func saltPrefix() -> String {
        let prefix = requiredText(
            .saltPrefix, "the site's part of every salt, such as com.example.notes: with its colon")
        if prefix.isEmpty || ServiceConfiguration.isSaltPrefix(prefix) { return prefix }
        refuse(.saltPrefix, prefix, mustBe: "1 to 255 bytes without spaces and control characters")
        return ""
    }
}

import CommandLineKit
import Foundation
import HTTPCore
import HTTPServer
import Postgres
import SalternServer
import TransportSecurity

struct Serve: Command {
    static let words = ["serve"]
    static let summary = "serve the API over TLS until SIGTERM"
    static let usage = [""]
    static let example = "SALTERN_LISTEN=0.0.0.0:443 saltern serve"
    static let help = """
        Required:
          SALTERN_DATABASE_URL                 PostgreSQL 15 or newer, as a URL or in
                                               keyword form, with one or more hosts;
                                               the role only reads and writes rows
          SALTERN_SALT_PREFIX                  the site's part of every salt, such as
                                               com.example.notes: with its colon;
                                               permanent for a database
          SALTERN_MASTER_KEY_FILE              the key that seals secrets in the
                                               database; see saltern master-key create
        With defaults:
          SALTERN_DATABASE_POOLING             session, or transaction behind a pooler
                                               in that mode (PgBouncer 1.21 or newer)
          SALTERN_LISTEN                       127.0.0.1:8443
          SALTERN_TLS_DIRECTORY                tls: certificate.pem, key.pem and
                                               backup-key.pem
          SALTERN_TLS_MINIMUM_VERSION          1.3, or 1.2
          SALTERN_SERVICE_NAME                 Saltern
          SALTERN_SHOW_VERSION                 off, or on: GET /v1/service returns the
                                               version
          SALTERN_REGISTRATION                 closed, invite, or open
          SALTERN_KDF_MINIMUM_ITERATIONS       600000, for new parameters
          SALTERN_KDF_DEFAULT_ITERATIONS       600000, or the minimum if it is higher
          SALTERN_FAILOVER                     asynchronous, or synchronous if a
                                               failover of PostgreSQL loses no commit
          SALTERN_SESSION_IDLE_TIMEOUT         30d
          SALTERN_SESSION_LIFETIME             365d, or the idle timeout if it is longer
          SALTERN_TOMBSTONE_RETENTION          90d: how long a device can be offline
                                               without a full listing
          SALTERN_EVENT_RETENTION              400d: age limit of the security log
          SALTERN_OPAQUE_FORMAT                on, or off
          SALTERN_ANONYMOUS_SHARES             off, or on: shares without an account,
                                               small and for at most 7 days
          SALTERN_ANONYMOUS_SHARES_LIMIT       1000: maximum number of those
          SALTERN_RATE_LIMITS                  on; off, for benchmarks only; or values
                                               such as login=20/5,lookup=100/10
          SALTERN_TRUSTED_PROXIES              none, or addresses and blocks whose
                                               X-Forwarded-For counts
          SALTERN_PROXY_PROTOCOL               none, or addresses and blocks of proxies
                                               that pass TLS through and send the PROXY
                                               protocol, version 2 (send-proxy-v2)
          SALTERN_APPLE_APP_IDS                none, or TEAMID.bundle.id,…: apps that
                                               open links to shares
          SALTERN_ANDROID_APPS                 none, or package=SHA-256 of the signing
                                               certificate,…
          SALTERN_PASSKEYS_RP_ID               off, or the domain name that passkeys
                                               belong to, such as example.org
          SALTERN_PASSKEYS_ORIGINS             none, which is https:// and that name, or
                                               https origins, android:apk-key-hash:…
          SALTERN_APP_STORE_ID                 none, or the app that Safari offers on
                                               the page of a share
          SALTERN_TOKEN_ISSUER                 none, or the server's origin in identity
                                               tokens, such as https://sync.example.com
          SALTERN_SIGNING_KEY_FILE             none, or the keys that sign tokens; see
                                               saltern signing-key create
          SALTERN_TOKEN_AUDIENCES              none, or audiences of tokens, such as
                                               billing,push=account,crm=account+userid
          SALTERN_TOKEN_LIFETIME               5m, from 1m to 1h
          SALTERN_ALLOWED_ORIGINS              none, or origins of web pages that may
                                               use the API: https://app.example.com,…
          SALTERN_DESTINATION_CA               none, or authorities in PEM for receivers
                                               of events instead of the system's; use a
                                               file (SALTERN_DESTINATION_CA_FILE)
          SALTERN_LOOPS                        the number of cores
          SALTERN_READ_CONNECTIONS             4, for each loop
          SALTERN_COMMIT_CONNECTIONS           2, for each loop: concurrent writes
                                               share a commit
          SALTERN_ALLOW_UNSAFE_DATABASE        off, or on, for tests only: accept a
                                               database with fsync, full_page_writes or
                                               synchronous_commit off, which can lose
                                               commits
          SALTERN_MAX_CONNECTIONS              10000
          SALTERN_MAX_CONNECTIONS_PER_ADDRESS  2048
          SALTERN_MAX_CONCURRENT_REQUESTS      1024, for each loop
          SALTERN_KEEP_ALIVE                   75s: time limit of an idle connection
          SALTERN_STRICT_TRANSPORT_SECURITY    365d: how long browsers require HTTPS for
                                               the host; or off
          SALTERN_DRAIN_TIMEOUT                30s
          SALTERN_HANDOVER_SOCKET              off, or the path of a Unix socket: the
                                               next server of the same user with this
                                               path takes over without interruption
          SALTERN_METRICS_LISTEN               off, or an address for Prometheus: plain
                                               HTTP on a loopback address, otherwise TLS
                                               with the server's certificate
          SALTERN_CORE_DUMPS                   off; on, for developers: the process can
                                               be dumped and traced
          SALTERN_LOG_LEVEL                    info: debug, info, warning or error

        Each variable can name a file instead: SALTERN_DATABASE_URL_FILE and so on. The
        schema must be current: see `saltern migrate up`. SIGTERM and SIGINT let
        requests finish, and a second one ends the server at once. SIGHUP reloads
        certificate, key, master key and signing keys.

        Exit status 78: settings, rights, passwords or schema need a change. After
        status 1, another start can succeed. systemd is notified (Type=notify). Log
        lines are JSON on standard error.
        """

    /// The maximum delay of the exit by a reader that does not read the log.
    private static let lastWords = Duration.seconds(2)

    /// Returns the time for log lines, from the machine's clock.
    @Sendable private static func time() -> UTCTimestamp {
        UTCTimestamp(microsecondsSinceEpoch: SystemWallClock().now.unixMicroseconds)
    }

    init(_ arguments: inout Arguments) {}

    func run(_ console: Console) async throws {
        let writer = LogWriter(descriptor: FileHandle.standardError.fileDescriptor, now: Self.time)
        let signals = ServerSignals { writer.flush(within: Self.lastWords) }
        var configuration = try StartFailure.checking { () throws(CommandFailure) -> ServeConfiguration in
            try ServeConfiguration(console.environment, coreCount: ProcessInfo.processInfo.activeProcessorCount)
        }
        let manager = ServiceManager(ProcessInfo.processInfo.environment)
        defer { writer.flush(within: Self.lastWords) }
        let log = Log(minimumLevel: configuration.logLevel, sink: writer, now: Self.time)
        ProcessLimits.boundAllocator(loopCount: configuration.loopCount)
        let descriptors = ProcessLimits.raiseDescriptors()
        if descriptors < configuration.descriptorCount {
            log.write(
                .warning, "descriptors_short", ["limit": descriptors, "needed": configuration.descriptorCount])
        }
        let server: RunningServer
        do {
            server = try await RunningServer.start(configuration, log: log, onWaiting: manager.waiting) {
                log.write(.info, "server_taken_over")
                signals.stop()
            }
        } catch {
            throw StartFailure.start(error)
        }
        signals.started()
        manager.ready()
        if configuration.service.rateLimits == .off { log.write(.warning, "rate_limits_off") }
        let addresses = await server.listeningAddresses.map(\.description).joined(separator: ", ")
        log.write(
            .info, "server_started",
            ["address": OperatorText("\(server.address)"), "listening": OperatorText(addresses)])
        let work = Task { [configuration] in await server.work(configuration) }
        defer { work.cancel() }
        for await signal in signals.arriving {
            switch signal {
            case .reload:
                let failures = configuration.reload(log)
                server.use(configuration.tls, configuration.service, failures)
            case .stop:
                log.write(.info, "server_stopping")
                manager.stopping()
                work.cancel()
                await server.stop(timeout: configuration.drainTimeout, after: work)
                log.write(.info, "server_stopped")
                return
            }
        }
    }
}

/// Makes a server read its files again.
///
/// SIGHUP has no reply, and systemd before 253 has no `Type=notify-reload`, so the command reads the files itself and
/// reports faults.
struct ReloadServer: Command {
    static let words = ["reload"]
    static let summary = "reload certificate and keys of a server"
    static let usage = ["PID"]
    static let example = "saltern reload 4711"
    static let help = """
        Sends SIGHUP to the process PID, which must be a server with the settings of
        this command. It reads certificate, key, master key and signing keys again. Exit
        status 1: one of these files is unusable. The server keeps the earlier file, and
        would not start with the new one. The systemd units use it, so that `systemctl
        reload saltern` fails.
        """

    private let process: pid_t

    init(_ arguments: inout Arguments) throws(UsageError) {
        guard let number = OperatorNumber.integer(try arguments.word("the number of the process")),
            (1...Int(pid_t.max)).contains(number)
        else { throw UsageError(message: "PID must be the number of a process") }
        process = pid_t(number)
    }

    func run(_ console: Console) async throws {
        var settings = Settings(console.environment)
        _ = settings.tlsFiles()
        if let file = settings.masterKeyFile() { _ = settings.masterKey(file) }
        _ = settings.tokens()
        // The signal is also sent with an unusable file. The server loads the others, and reports the rejected one in
        // log and metrics.
        guard kill(process, SIGHUP) == 0 else {
            throw CommandFailure("no signal can be sent to \(process): \(String(cString: strerror(errno)))")
        }
        try settings.finish()
    }
}

/// An error that keeps a server from starting, with an exit status that shows whether another start can help.
enum StartFailure {
    /// Only a person can fix it: `EX_CONFIG` of sysexits.h. A service manager does not try again
    /// (`RestartPreventExitStatus=78`).
    static let configurationStatus: Int32 = 78

    /// Reads the settings and their files. An invalid one is permanent until a person changes it.
    static func checking<Value>(_ read: () throws(CommandFailure) -> Value) throws(CommandFailure) -> Value {
        do throws(CommandFailure) {
            return try read()
        } catch {
            throw CommandFailure(error.messages, status: configurationStatus, code: "configuration")
        }
    }

    /// Converts an error of the start, which is permanent or temporary.
    static func start(_ error: any Error) -> CommandFailure {
        let message = "\(error)"
        return isForGood(error)
            ? CommandFailure(message, status: configurationStatus, code: "configuration") : CommandFailure(message)
    }

    private static func isForGood(_ error: any Error) -> Bool {
        switch error {
        // The schema is incompatible or was changed.
        case MigrationError.database(let error): isForGood(error)
        case is MigrationError, is UnsafeDatabase, is UnsuitablePooling, is InstallationError: true
        case PostgresError.unavailable(_, let reason?): reason.isForGood
        case is CommandFailure: true
        // An unknown name, another machine's address, or a port without permission.
        case let error as ListenError: error.isForGood
        default: false
        }
    }
}

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
        Settings are environment variables, listed with default, values (in parentheses)
        and meaning.

        \(Setting.help)

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

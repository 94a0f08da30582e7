import CommandLineKit
import Foundation

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

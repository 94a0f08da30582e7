import CommandLineKit
import HTTPServer
import Postgres
import SalternServer

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

import CommandLineKit
import HTTPServer
import Postgres
import SalternServer

/// What keeps a server from starting, with the exit status that says whether another start can help.
enum StartFailure {
    /// Only a person can mend it: `EX_CONFIG` of sysexits.h. A service manager does not try again
    /// (`RestartPreventExitStatus=78`).
    static let configurationStatus: Int32 = 78

    /// Reads the settings, and the files that they name; what cannot be used stays as it is until a person changes it.
    static func checking<Value>(_ read: () throws(CommandFailure) -> Value) throws(CommandFailure) -> Value {
        do throws(CommandFailure) {
            return try read()
        } catch {
            throw CommandFailure(error.messages, status: configurationStatus, code: "configuration")
        }
    }

    /// The start failed with `error`: because of something that stays as it is, or of something that may pass.
    static func start(_ error: any Error) -> CommandFailure {
        let message = "\(error)"
        return isForGood(error)
            ? CommandFailure(message, status: configurationStatus, code: "configuration") : CommandFailure(message)
    }

    private static func isForGood(_ error: any Error) -> Bool {
        switch error {
        // The schema is not the one that this program needs, or was changed.
        case MigrationError.database(let error): isForGood(error)
        case is MigrationError, is UnsafeDatabase, is UnsuitablePooling, is InstallationError: true
        case PostgresError.unavailable(_, let reason?): reason.isForGood
        case is CommandFailure: true
        // A name that is unknown, an address that is another machine's, a port that needs a right.
        case let error as ListenError: error.isForGood
        default: false
        }
    }
}

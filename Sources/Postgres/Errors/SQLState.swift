/// A five-character error code of PostgreSQL (manual, appendix A).
public struct SQLState: Sendable, Hashable {
    /// The five characters.
    public let code: String

    /// Wraps a five-character code.
    public init(_ code: String) { self.code = code }

    /// The first two characters, which name the class of the error.
    public var errorClass: Substring { code.prefix(2) }

    /// True if a server rejects a connection with this code because of a setting in the connection string's `options`.
    ///
    /// The setting or its value is invalid, or it cannot be set there.
    var isOfSettings: Bool {
        ["42704", "42602", "42601", "22023", "55P02"].contains(code)
    }

    public static let successfulCompletion = SQLState("00000")
    public static let connectionException = SQLState("08000")
    public static let connectionFailure = SQLState("08006")
    public static let featureNotSupported = SQLState("0A000")
    public static let stringDataRightTruncation = SQLState("22001")
    public static let numericValueOutOfRange = SQLState("22003")
    public static let characterNotInRepertoire = SQLState("22021")
    public static let divisionByZero = SQLState("22012")
    public static let invalidTextRepresentation = SQLState("22P02")
    public static let integrityConstraintViolation = SQLState("23000")
    public static let notNullViolation = SQLState("23502")
    public static let foreignKeyViolation = SQLState("23503")
    public static let uniqueViolation = SQLState("23505")
    public static let checkViolation = SQLState("23514")
    public static let exclusionViolation = SQLState("23P01")
    public static let readOnlyTransaction = SQLState("25006")
    public static let inFailedTransaction = SQLState("25P02")
    public static let idleInTransactionTimeout = SQLState("25P03")
    public static let invalidStatementName = SQLState("26000")
    public static let invalidAuthorization = SQLState("28000")
    public static let invalidPassword = SQLState("28P01")
    public static let unknownDatabase = SQLState("3D000")
    public static let serializationFailure = SQLState("40001")
    public static let deadlockDetected = SQLState("40P01")
    public static let insufficientPrivilege = SQLState("42501")
    public static let syntaxError = SQLState("42601")
    public static let invalidSchemaName = SQLState("3F000")
    public static let undefinedColumn = SQLState("42703")
    public static let undefinedFunction = SQLState("42883")
    public static let undefinedObject = SQLState("42704")
    public static let undefinedTable = SQLState("42P01")
    public static let duplicateDatabase = SQLState("42P04")
    public static let duplicateObject = SQLState("42710")
    public static let duplicatePreparedStatement = SQLState("42P05")
    public static let diskFull = SQLState("53100")
    public static let outOfMemory = SQLState("53200")
    public static let tooManyConnections = SQLState("53300")
    public static let lockNotAvailable = SQLState("55P03")
    public static let objectInUse = SQLState("55006")
    public static let queryCanceled = SQLState("57014")
    public static let adminShutdown = SQLState("57P01")
    public static let crashShutdown = SQLState("57P02")
    public static let cannotConnectNow = SQLState("57P03")
    public static let databaseDropped = SQLState("57P04")
    public static let idleSessionTimeout = SQLState("57P05")
    public static let raisedException = SQLState("P0001")
    public static let internalError = SQLState("XX000")

    /// True if the same request may succeed after a short delay.
    public var isTransient: Bool {
        switch self {
        case .serializationFailure, .deadlockDetected, .lockNotAvailable, .queryCanceled, .readOnlyTransaction,
            .objectInUse, .idleInTransactionTimeout:
            true
        default:
            ["08", "53", "57", "58"].contains(errorClass)
        }
    }

    /// True if the session becomes unusable: the server ends it, or has become a standby.
    public var endsSession: Bool {
        switch self {
        case .readOnlyTransaction, .adminShutdown, .crashShutdown, .cannotConnectNow, .databaseDropped,
            .idleSessionTimeout, .idleInTransactionTimeout:
            true
        default:
            errorClass == "08"
        }
    }
}

extension SQLState: CustomStringConvertible {
    public var description: String { code }
}

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

extension SQLState {
    /// The code with PostgreSQL's name for it, as in `42P01 (undefined table)` (PostgreSQL's documentation, appendix
    /// A).
    ///
    /// A code that is not listed here gets the name of its class.
    public var named: String {
        guard let name = Self.conditions[code] ?? Self.classes[String(errorClass)] else { return code }
        return "\(code) (\(name))"
    }

    private static let conditions: [String: String] = [
        "08006": "connection failure", "0A000": "feature not supported", "22001": "string data right truncation",
        "22003": "numeric value out of range", "22021": "character not in repertoire",
        "22P02": "invalid text representation", "22P05": "untranslatable character", "23502": "not null violation",
        "23503": "foreign key violation", "23505": "unique violation", "23514": "check violation",
        "25006": "read only SQL transaction", "25P02": "in failed SQL transaction",
        "25P03": "idle in transaction session timeout", "25P04": "transaction timeout",
        "26000": "invalid SQL statement name", "28000": "invalid authorization specification",
        "28P01": "invalid password", "2BP01": "dependent objects still exist", "3D000": "invalid catalog name",
        "3F000": "invalid schema name", "40001": "serialization failure", "40P01": "deadlock detected",
        "42501": "insufficient privilege", "42601": "syntax error", "42602": "invalid name",
        "42703": "undefined column", "42704": "undefined object", "42710": "duplicate object",
        "42723": "duplicate function", "42846": "cannot coerce", "42883": "undefined function",
        "42P01": "undefined table", "42P04": "duplicate database", "42P05": "duplicate prepared statement",
        "42P06": "duplicate schema", "42P07": "duplicate table", "53100": "disk full", "53200": "out of memory",
        "53300": "too many connections", "53400": "configuration limit exceeded", "54000": "program limit exceeded",
        "55000": "object not in prerequisite state", "55006": "object in use",
        "55P02": "can't change runtime parameter", "55P03": "lock not available", "57014": "query canceled",
        "57P01": "admin shutdown", "57P02": "crash shutdown", "57P03": "cannot connect now",
        "57P04": "database dropped", "57P05": "idle session timeout", "58030": "I/O error", "58P01": "undefined file",
        "XX000": "internal error", "XX001": "data corrupted", "XX002": "index corrupted",
    ]

    private static let classes: [String: String] = [
        "01": "warning", "02": "no data", "08": "connection exception", "0A": "feature not supported",
        "21": "cardinality violation", "22": "data exception", "23": "integrity constraint violation",
        "24": "invalid cursor state", "25": "invalid transaction state", "26": "invalid SQL statement name",
        "28": "invalid authorization specification", "2B": "dependent privilege descriptors still exist",
        "2D": "invalid transaction termination", "34": "invalid cursor name", "3B": "savepoint exception",
        "3D": "invalid catalog name", "3F": "invalid schema name", "40": "transaction rollback",
        "42": "syntax error or access rule violation", "44": "WITH CHECK OPTION violation",
        "53": "insufficient resources", "54": "program limit exceeded", "55": "object not in prerequisite state",
        "57": "operator intervention", "58": "system error", "F0": "configuration file error",
        "HV": "foreign data wrapper error", "P0": "PL/pgSQL error", "XX": "internal error",
    ]
}

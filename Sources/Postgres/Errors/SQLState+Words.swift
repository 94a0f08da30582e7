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

/// Which column of a result could not be read, and why.
public struct DecodingFailure: Error, Sendable, Equatable, CustomStringConvertible {
    /// What was wrong with the column.
    public enum Reason: Error, Sendable, Equatable {
        /// NULL where the statement's type has no optional.
        case null
        /// The column is of another type (both by `oid`).
        case type(expected: UInt32, found: UInt32)
        /// The bytes are no value of the type.
        case malformed
        /// The result has fewer columns, or fewer or more rows, than expected.
        case missing
    }

    /// The statement's type; empty until the client fills it in.
    public internal(set) var statement = ""
    /// The column, counted from 0.
    public let column: Int
    /// What was wrong.
    public let reason: Reason

    public var description: String {
        let what =
            switch reason {
            case .null: "is NULL"
            case .type(let expected, let found): "has type \(found) instead of \(expected)"
            case .malformed: "is malformed"
            case .missing: "is missing"
            }
        return "\(statement): column \(column) \(what)"
    }
}

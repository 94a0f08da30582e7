/// A column of a result that could not be decoded, with the reason.
public struct DecodingFailure: Error, Sendable, Equatable, CustomStringConvertible {
    /// The kind of fault.
    public enum Reason: Error, Sendable, Equatable {
        /// The column is NULL, and the statement's type is not optional.
        case null
        /// The column has another type. Both values are `oid`s.
        case type(expected: UInt32, found: UInt32)
        /// The bytes are not a value of the type.
        case malformed
        /// The result has fewer columns than expected, or another number of rows.
        case missing
    }

    /// The statement's type; empty until the client fills it in.
    public internal(set) var statement = ""
    /// The column, counted from 0.
    public let column: Int
    /// The fault of the column.
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

public import HTTPCore
public import Postgres

/// A name that the operator gives to an audience, a service or a destination, whose type says to which: 1 to 64 of `a-z`,
/// `0-9`, `.`, `_` and `-`, the first a letter or a digit.
public struct OperatorName<Named>: Sendable, Hashable, CustomStringConvertible {
    public let description: String

    /// The most bytes of a name.
    public static var byteLimit: Int { 64 }

    public init?(_ text: String) {
        guard text.utf8.count <= Self.byteLimit, text.wholeMatch(of: /[a-z0-9][a-z0-9._-]*/) != nil else { return nil }
        description = text
    }
}

extension OperatorName: PostgresValue {
    public static var postgresType: PostgresType { .text }

    public func encode(to writer: inout ByteWriter) { description.encode(to: &writer) }

    public static func decode(_ bytes: UnsafeRawBufferPointer?) -> OperatorName? {
        String.decode(bytes).flatMap { OperatorName($0) }
    }
}

extension OperatorName: LogValue {
    public func writeLogValue(to writer: inout JSONWriter) { writer.string(description) }
}

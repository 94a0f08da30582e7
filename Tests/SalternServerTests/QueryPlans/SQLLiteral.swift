import Cryptography

@testable import Postgres

/// The parameters of a statement as SQL, for `EXECUTE`, which takes nothing else.
enum SQLLiteral {
    /// `(…, …)`, or nothing when the statement has no parameters.
    static func arguments(of statement: some Statement) -> String {
        var parameters = Parameters()
        statement.bind(to: &parameters)
        let literals = parameters.withArrays { count, types, values, lengths, _ -> [String] in
            (0..<Int(count)).map { index in
                guard let type = types?[index] else { return "NULL" }
                let bytes = values?[index].map { UnsafeRawBufferPointer(start: $0, count: Int(lengths?[index] ?? 0)) }
                return literal(bytes, PostgresType(oid: type))
            }
        }
        return literals.isEmpty ? "" : "(\(literals.joined(separator: ", ")))"
    }

    /// The names of a statement's parameter types, for `PREPARE`.
    static func types(of statement: some Statement) -> String {
        var parameters = Parameters()
        statement.bind(to: &parameters)
        let names = parameters.withArrays { count, types, _, _, _ -> [String] in
            (0..<Int(count)).map { name(of: PostgresType(oid: types?[$0] ?? 0)) }
        }
        return names.isEmpty ? "" : "(\(names.joined(separator: ", ")))"
    }

    private static func name(of type: PostgresType) -> String {
        switch type {
        case .bool: "boolean"
        case .bytea: "bytea"
        case .int8: "bigint"
        case .int4: "integer"
        case .text: "text"
        case .timestamptz: "timestamptz"
        case .uuid: "uuid"
        case .boolArray: "boolean[]"
        case .byteaArray: "bytea[]"
        case .int4Array: "integer[]"
        case .int8Array: "bigint[]"
        case .textArray: "text[]"
        case .timestamptzArray: "timestamptz[]"
        case .uuidArray: "uuid[]"
        default: preconditionFailure("no name for the type \(type.oid)")
        }
    }

    private static func literal(_ bytes: UnsafeRawBufferPointer?, _ type: PostgresType) -> String {
        guard let bytes else { return "NULL" }
        return switch type {
        case .boolArray: array([Bool?].decode(bytes), type)
        case .byteaArray: array([[UInt8]?].decode(bytes), type)
        case .int4Array: array([Int32?].decode(bytes), type)
        case .int8Array: array([Int64?].decode(bytes), type)
        case .textArray: array([String?].decode(bytes), type)
        case .timestamptzArray: array([Timestamp?].decode(bytes), type)
        case .uuidArray: array([UUID?].decode(bytes), type)
        case .bool: scalar(Bool.decode(bytes))
        case .bytea: scalar([UInt8](bytes))
        case .int8: scalar(Int64.decode(bytes))
        case .int4: scalar(Int32.decode(bytes))
        case .text: scalar(String.decode(bytes))
        case .timestamptz: scalar(Timestamp.decode(bytes))
        case .uuid: scalar(UUID.decode(bytes))
        default: preconditionFailure("no literal for the type \(type.oid)")
        }
    }

    private static func array<Value>(_ values: [Value?]?, _ type: PostgresType) -> String {
        "ARRAY[\((values ?? []).map { scalar($0) }.joined(separator: ", "))]::\(name(of: type))"
    }

    private static func scalar<Value>(_ value: Value?) -> String {
        switch value {
        case nil: "NULL"
        case let bytes as [UInt8]: "'\\x\(Hex.encode(bytes))'::bytea"
        case let text as String: "'\(text.replacing("'", with: "''"))'"
        case let uuid as UUID: "'\(uuid)'::uuid"
        case Timestamp.distantFuture as Timestamp: "'infinity'::timestamptz"
        case Timestamp.distantPast as Timestamp: "'-infinity'::timestamptz"
        case let moment as Timestamp:
            "('2000-01-01 00:00:00Z'::timestamptz + '\(moment.microsecondsSince2000) microseconds'::interval)"
        case let value?: "\(value)"
        }
    }
}

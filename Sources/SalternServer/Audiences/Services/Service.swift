public import Postgres

/// A program of the operator that inspects its audience's tokens.
public struct Service: Sendable, Equatable {
    public let name: ServiceName
    public let audience: AudienceName
    public let createdAt: Timestamp
}

/// The name of a service, of the same form as that of an audience.
public struct ServiceName: Sendable, Hashable, CustomStringConvertible {
    public let description: String

    public init?(_ text: String) {
        guard AudienceName.isName(text) else { return nil }
        description = text
    }
}

extension ServiceName: PostgresValue {
    public static var postgresType: PostgresType { .text }

    public func encode(to writer: inout ByteWriter) { description.encode(to: &writer) }

    public static func decode(_ bytes: UnsafeRawBufferPointer?) -> ServiceName? {
        String.decode(bytes).flatMap { ServiceName($0) }
    }
}

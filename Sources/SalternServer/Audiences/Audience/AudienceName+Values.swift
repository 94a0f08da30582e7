public import HTTPCore
public import Postgres

extension AudienceName: PostgresValue {
    public static var postgresType: PostgresType { .text }

    public func encode(to writer: inout ByteWriter) { description.encode(to: &writer) }

    public static func decode(_ bytes: UnsafeRawBufferPointer?) -> AudienceName? {
        String.decode(bytes).flatMap { AudienceName($0) }
    }
}

extension AudienceName: LogValue {
    public func writeLogValue(to writer: inout JSONWriter) { writer.string(description) }
}

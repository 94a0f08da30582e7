/// The parameters of one statement in binary format, in a buffer that every statement of a client uses in turn.
public struct Parameters: ~Copyable {
    private var writer = ByteWriter()
    /// Where each value starts; -1 for NULL.
    private var offsets: [Int] = []
    private var lengths: [CInt] = []
    private var types: [UInt32] = []
    private var formats: [CInt] = []
    private var addresses: [UnsafePointer<CChar>?] = []

    package init() {}

    /// How many parameters were appended.
    public var count: Int { offsets.count }

    /// How many bytes their values have.
    var byteCount: Int { writer.count }

    /// Appends a value; `nil` becomes NULL of the right type.
    public mutating func append<Value: PostgresValue>(_ value: Value) {
        let start = writer.count
        if value.isNull {
            append(start: -1, type: Value.postgresType)
        } else {
            value.encode(to: &writer)
            append(start: start, type: Value.postgresType)
        }
    }

    /// Appends bytes as `bytea`.
    public mutating func append(bytes: UnsafeRawBufferPointer) {
        let start = writer.count
        writer.write(bytes)
        append(start: start, type: .bytea)
    }

    private mutating func append(start: Int, type: PostgresType) {
        offsets.append(start)
        lengths.append(start < 0 ? 0 : CInt(writer.count - start))
        types.append(type.oid)
    }

    package mutating func removeAll() {
        writer.removeAll()
        offsets.removeAll(keepingCapacity: true)
        lengths.removeAll(keepingCapacity: true)
        types.removeAll(keepingCapacity: true)
    }

    /// The arrays that libpq wants. They are valid until `body` returns.
    mutating func withArrays<Result>(
        _ body: (
            _ count: CInt, _ types: UnsafePointer<UInt32>?, _ values: UnsafePointer<UnsafePointer<CChar>?>?,
            _ lengths: UnsafePointer<CInt>?, _ formats: UnsafePointer<CInt>?
        ) -> Result
    ) -> Result {
        addresses.removeAll(keepingCapacity: true)
        for offset in offsets { addresses.append(offset < 0 ? nil : writer.address(at: offset)) }
        while formats.count < offsets.count { formats.append(1) }
        return body(CInt(offsets.count), types, addresses, lengths, formats)
    }
}

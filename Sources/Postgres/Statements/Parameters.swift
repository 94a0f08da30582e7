/// The parameters of one statement in binary format. All statements of a client reuse the buffer.
public struct Parameters: ~Copyable {
    private var writer = ByteWriter()
    /// Offset of each value; -1 for NULL.
    private var offsets: [Int] = []
    private var lengths: [CInt] = []
    private var types: [UInt32] = []
    private var formats: [CInt] = []
    private var addresses: [UnsafePointer<CChar>?] = []

    package init() {}

    /// The number of parameters.
    public var count: Int { offsets.count }

    /// The size of all values.
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

    /// Passes the arrays that libpq expects to `body`. They are valid until it returns.
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

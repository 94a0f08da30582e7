internal import CLibPQ

extension ServerError {
    /// The error that a result reports; `nil` when it did not come from the server but from libpq.
    init?(result: OpaquePointer) {
        // The names of these fields are characters (postgres_ext.h).
        func field(_ code: Unicode.Scalar) -> String? {
            PQresultErrorField(result, CInt(code.value)).map { String(cString: $0) }
        }
        guard let state = field("C") else { return nil }
        self.init(
            state: SQLState(state), schema: field("s"), table: field("t"), column: field("c"),
            constraint: field("n"), unredactedMessage: field("M") ?? "")
    }
}

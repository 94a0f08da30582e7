internal import CLibPQ

extension ServerError {
    /// Reads the error of a result. Returns `nil` if libpq reported it instead of the server.
    init?(result: OpaquePointer) {
        // Field codes are characters (postgres_ext.h).
        func field(_ code: Unicode.Scalar) -> String? {
            PQresultErrorField(result, CInt(code.value)).map { String(cString: $0) }
        }
        guard let state = field("C") else { return nil }
        self.init(
            state: SQLState(state), schema: field("s"), table: field("t"), column: field("c"),
            constraint: field("n"), unredactedMessage: field("M") ?? "")
    }
}

internal import HTTPCore
internal import Postgres

extension JSONWriter {
    /// Writes an identifier in its canonical form.
    mutating func uuid(_ uuid: UUID) { string(plainCapacity: UUID.characterCount) { uuid.write(to: $0) } }

    /// Writes an identifier in its canonical form.
    mutating func member<Entity>(_ name: String, _ id: Identifier<Entity>) {
        self.name(name)
        uuid(id.uuid)
    }

    /// Writes a request id.
    mutating func requestID(_ id: RequestID) { string(plainCapacity: RequestID.characterCount) { id.write(to: $0) } }

    /// Writes the trace of a request as members of the current object.
    mutating func members(_ trace: TraceParent) {
        name("traceId")
        string(plainCapacity: TraceParent.traceIDCharacterCount) { trace.writeTraceID(to: $0) }
        name("parentSpanId")
        string(plainCapacity: TraceParent.spanIDCharacterCount) { trace.writeSpanID(to: $0) }
    }
}

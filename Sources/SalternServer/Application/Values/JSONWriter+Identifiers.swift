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

    /// Writes the name of a request.
    mutating func requestID(_ id: RequestID) { string(plainCapacity: RequestID.characterCount) { id.write(to: $0) } }
}

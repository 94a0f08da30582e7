extension JSONWriter {
    public mutating func member(_ name: String, _ value: String) {
        self.name(name)
        string(value)
    }

    public mutating func member(_ name: String, _ value: Int) {
        self.name(name)
        integer(Int64(value))
    }

    public mutating func member(_ name: String, _ value: Int64) {
        self.name(name)
        integer(value)
    }

    public mutating func member(_ name: String, _ value: Bool) {
        self.name(name)
        bool(value)
    }

    public mutating func member(_ name: String, _ value: UTCTimestamp) {
        self.name(name)
        timestamp(value)
    }

    public mutating func member(_ name: String, _ value: JSONValue) {
        self.name(name)
        self.value(value)
    }

    /// Writes a member whose value is text that needs no escapes, such as base64.
    public mutating func member(_ name: String, plain text: some Collection<UInt8>) {
        self.name(name)
        string(plain: text)
    }

    /// Writes a member whose value is an object that `build` writes.
    public mutating func object<Failure: Error>(
        _ name: String, _ build: (inout JSONWriter) throws(Failure) -> Void
    ) throws(Failure) {
        self.name(name)
        try object(build)
    }

    /// Writes a member whose value is an array that `build` writes.
    public mutating func array<Failure: Error>(
        _ name: String, _ build: (inout JSONWriter) throws(Failure) -> Void
    ) throws(Failure) {
        self.name(name)
        try array(build)
    }
}

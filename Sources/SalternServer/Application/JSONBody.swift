internal import HTTPCore

/// Reads the bodies of all endpoints.
enum JSONBody {
    /// Parses the request's body as one object, passes its members to `read`, and rejects members that remain. The
    /// body's text is discarded; only the read values stay.
    ///
    /// A member named `password`, at any depth, is rejected before all other errors: such a client has not derived a
    /// key.
    ///
    /// - Parameter refuse: Rejects further documents, before the members are read.
    static func read<Value>(
        _ request: Request, refusing refuse: (JSONValue) throws -> Void = { _ in },
        _ read: (inout JSONMembers) throws -> Value
    ) throws -> Value {
        let document = try JSONParser(valueLimit: request.valueLimit).parse(request.takeBody())
        try refusePassword(in: document)
        try refuse(document)
        return try JSONMembers.read(document, read)
    }

    /// Reads a body that can be large. It yields to other work while it parses, and while `read` decodes sealed values.
    static func readLarge<Value>(
        _ request: Request, _ read: (inout JSONMembers) async throws -> Value
    ) async throws -> Value {
        let document = try await JSONParser(valueLimit: request.valueLimit).parse(
            request.takeBody(), pace: request.pace)
        try refusePassword(in: document)
        var members = try JSONMembers(document)
        let value = try await read(&members)
        try members.finish()
        return value
    }

    private static func refusePassword(in document: JSONValue) throws(PasswordRefused) {
        guard !document.contains(memberNamed: "password") else { throw PasswordRefused() }
    }
}

/// The error of a body with a member named `password`.
struct PasswordRefused: ProblemConvertible {
    var problem: Problem {
        Problem(
            .unprocessableContent, "password_refused",
            detail: "The server never accepts a password. Send the PBKDF2 output as `passwordKey`.", field: "password")
    }
}

internal import HTTPCore

/// The one way in which endpoints read their bodies.
enum JSONBody {
    /// Parses the request's body as one object, lets `read` take its members and refuses the rest. The body is gone
    /// afterwards: what was read of it stays, its text does not.
    ///
    /// A member named `password`, at any depth, is refused before anything else is said about the body: whoever
    /// sends one has not stretched it.
    static func read<Value>(_ request: Request, _ read: (inout JSONMembers) throws -> Value) throws -> Value {
        let document = try JSONParser(valueLimit: request.valueLimit).parse(request.takeBody())
        try refusePassword(in: document)
        return try JSONMembers.read(document, read)
    }

    /// The same for bodies that can be large: others have their turn while it is parsed, and while `read` decodes what is
    /// sealed.
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

/// A client sent something named `password`.
struct PasswordRefused: ProblemConvertible {
    var problem: Problem {
        Problem(
            .unprocessableContent, "password_refused",
            detail: "The server never accepts a password. Send the PBKDF2 output as `passwordKey`.", field: "password")
    }
}

internal import HTTPCore

/// The one way in which endpoints read their bodies.
enum JSONBody {
    /// Parses the request's body as one object, lets `read` take its members and refuses the rest.
    ///
    /// A member named `password`, at any depth, is refused before anything else is said about the body: whoever
    /// sends one has not stretched it.
    static func read<Value>(_ request: Request, _ read: (inout JSONMembers) throws -> Value) throws -> Value {
        let document = try JSONParser().parse(request.body)
        guard !document.contains(memberNamed: "password") else { throw PasswordRefused() }
        return try JSONMembers.read(document, read)
    }
}

/// A client sent something named `password`.
struct PasswordRefused: ProblemConvertible {
    var problem: Problem {
        Problem(
            .unprocessableContent, "password_refused",
            detail: "This server never takes a password. Send the PBKDF2 output as passwordKey.", field: "password")
    }
}

import CommandLineKit
import SalternServer

/// Reads names of audiences, services and destinations for the commands that manage them.
extension Arguments {
    /// Reads the next operand as the name of a thing.
    /// - Parameter thing: The word for messages, such as `service`.
    mutating func operatorName<Named>(_ thing: String) throws(UsageError) -> OperatorName<Named> {
        guard let name = OperatorName<Named>(try word("the \(thing)'s name")) else {
            throw UsageError(message: "a \(thing)'s name has \(OperatorName<Named>.form)")
        }
        return name
    }

    /// Reads `--audience`, which is required.
    mutating func audience() throws(UsageError) -> AudienceName {
        guard let text = try option("--audience") else { throw UsageError(message: "--audience is missing") }
        guard let name = AudienceName(text) else {
            throw UsageError(message: "--audience must have \(AudienceName.form)")
        }
        return name
    }
}

extension OperatorName {
    fileprivate static var form: String { "1 to 64 of a-z, 0-9, \".\", \"_\" and \"-\"" }
}

extension Console {
    /// Rejects an audience that is not in `SALTERN_TOKEN_AUDIENCES`. Accepts any if this command's environment sets
    /// none.
    func requireKnown(_ audience: AudienceName) throws(CommandFailure) {
        var settings = Settings(environment)
        let audiences = settings.audiences()
        try settings.finish()
        guard !audiences.isEmpty, !audiences.contains(where: { $0.name == audience }) else { return }
        throw CommandFailure("SALTERN_TOKEN_AUDIENCES has no audience \(audience)")
    }
}

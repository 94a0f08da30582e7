import CommandLineKit
import Postgres
import TransportSecurity

/// Checks that commands can act as the schema's owner, if the settings name one.
enum OwnerExamination {
    static func findings(_ console: Console) async -> [Finding] {
        let variable = DatabaseCommand.ownerVariable(console)
        guard variable != DatabaseCommand.serverVariable else { return [] }
        do {
            return try await DatabaseCommand.asOwner(console, needsSchema: false) { client in
                try await client.execute(ReadDatabaseFacts())
            }.flatMap { facts in
                [
                    // The first migration creates a missing schema.
                    facts.isSuperuser || facts.ownsSchema != false
                        ? Finding("database_owner", .fine, "the role of \(variable) can change the schema")
                        : Finding(
                            "database_owner", .problem,
                            "the role of \(variable) does not own the schema, so that nothing can be migrated or "
                                + "administered with it"),
                    BackupExamination.examineProgram(server: facts.version, console),
                ]
            }
        } catch {
            let failure = DatabaseCommand.failure(error, variable)
            let reasons = failure.messages
            if failure.code == "two_databases" { return reasons.map { Finding("database_owner", .problem, $0) } }
            return reasons.map { Finding("database_owner", .problem, "the owner cannot connect: \($0)") }
        }
    }
}

import CommandLineKit
import HTTPCore
import Postgres
import SalternServer

struct CreateService: Command {
    static let words = ["service", "create"]
    static let summary = "create a service and print its credential once"
    static let usage = ["NAME --audience AUDIENCE [OPTIONS]"]
    static let example = "saltern service create billing-1 --audience billing"
    static let help = """
          --audience NAME  the audience whose tokens it inspects
        \(AdminActor.help)
          --json           one object, for scripts

        Names have 1 to 64 of a-z, 0-9, ".", "_" and "-". Only a hash of the credential
        is stored: replace a lost one by that of another service. A credential that
        cannot be printed is not stored.

        \(DatabaseCommand.ownerHelp)
        """

    private let name: ServiceName
    private let audience: AudienceName
    private let actor: AdminActor
    private let asJSON: Bool

    init(_ arguments: inout Arguments) throws(UsageError) {
        asJSON = arguments.flag("--json")
        actor = try AdminActor(&arguments)
        audience = try arguments.audience()
        name = try arguments.operatorName("service")
    }

    func run(_ console: Console) async throws {
        try console.requireKnown(audience)
        let signature = try await actor.signature(console)
        _ = try await DatabaseCommand.asOwner(console) { [name, audience] in
            try await ServiceAdministration(database: $0).create(name, for: audience, by: signature) { credential in
                print(credential, console)
                if console.hasLostOutput { throw CommandFailure.lostOutput }
            }
        }
    }

    private func print(_ credential: ServiceCredential, _ console: Console) {
        guard asJSON else { return console.print(credential.text) }
        console.printJSON { writer in
            writer.member("service", name.description)
            writer.member("audience", audience.description)
            writer.member("credential", credential.text)
        }
    }
}

struct ListServices: Command {
    static let words = ["service", "list"]
    static let summary = "list the services that have a credential"
    static let example = "saltern service list"
    static let help = """
          --json           one object, for scripts

        \(DatabaseCommand.ownerHelp)
        """

    private let asJSON: Bool

    init(_ arguments: inout Arguments) throws(UsageError) { asJSON = arguments.flag("--json") }

    func run(_ console: Console) async throws {
        let services = try await DatabaseCommand.asOwner(console) {
            try await ServiceAdministration(database: $0).services()
        }
        if asJSON {
            console.printJSON { writer in
                writer.array("services") { writer in
                    for service in services {
                        writer.object { writer in
                            writer.member("service", service.name.description)
                            writer.member("audience", service.audience.description)
                            writer.member("createdAt", service.createdAt.utc)
                        }
                    }
                }
            }
            return
        }
        var table = Table([.text("service"), .text("audience"), .text("created")])
        for service in services {
            table.append([service.name.description, service.audience.description, service.createdAt.shown])
        }
        console.write(table.takeText())
    }
}

struct RemoveServiceCommand: Command {
    static let words = ["service", "remove"]
    static let summary = "remove a service; its credential stops working"
    static let usage = ["NAME [OPTIONS]"]
    static let example = "saltern service remove billing-1"
    static let help = """
        \(AdminActor.help)

        \(DatabaseCommand.ownerHelp)
        """

    private let name: ServiceName
    private let actor: AdminActor

    init(_ arguments: inout Arguments) throws(UsageError) {
        actor = try AdminActor(&arguments)
        name = try arguments.operatorName("service")
    }

    func run(_ console: Console) async throws {
        let signature = try await actor.signature(console)
        try await DatabaseCommand.asOwner(console) { [name] in
            try await ServiceAdministration(database: $0).remove(name, by: signature)
        }
        console.print("service \(name) is removed")
    }
}

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
        throw CommandFailure("\(Setting.tokenAudiences) has no audience \(audience)")
    }
}

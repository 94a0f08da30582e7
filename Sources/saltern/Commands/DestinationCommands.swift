import CommandLineKit
import HTTPCore
import Postgres
import SalternServer

struct CreateDestination: Command {
    static let words = ["destination", "create"]
    static let summary = "create a destination of events and print its secret"
    static let usage = [
        "NAME --audience AUDIENCE --url URL [OPTIONS]", "NAME --audience AUDIENCE --pull [OPTIONS]",
    ]
    static let example = "saltern destination create crm --audience crm --url https://example.com/crm"
    static let help = """
          --audience NAME  the audience whose names of accounts its events have
          --url URL        https URL that events are posted to
          --pull           a service of the audience fetches the events instead
          --events LIST    types, separated by commas, or all (account.created,
                           account.deleted,account.locked,account.unlocked,
                           plan.changed,receipt.stored); also possible:
                           session.opened,session.ended,changes
        \(MasterKeyFileOption.help)
        \(AdminActor.help)
          --json           one object, for scripts

        Servers send account events from now on, and the events on request from five
        seconds later. The secret is sealed in the database: `saltern destination
        rotate` replaces a lost one.

        \(DatabaseCommand.ownerHelp)
        """

    private let terms: DestinationAdministration.Terms
    private let key: MasterKeyFileOption
    private let actor: AdminActor
    private let asJSON: Bool

    init(_ arguments: inout Arguments) throws(UsageError) {
        asJSON = arguments.flag("--json")
        let isPulled = arguments.flag("--pull")
        actor = try AdminActor(&arguments)
        key = try MasterKeyFileOption(&arguments)
        let (text, list) = (try arguments.option("--url"), try arguments.option("--events"))
        let audience = try arguments.audience()
        guard isPulled == (text == nil) else { throw UsageError(message: "exactly one of --url and --pull is needed") }
        let url = text.flatMap { DestinationURL($0) }
        if text != nil, url == nil {
            throw UsageError(message: "--url must be an https URL of at most 2048 ASCII characters without a user")
        }
        let kinds = try Self.kinds(list)
        terms = DestinationAdministration.Terms(
            try arguments.operatorName("destination"), audience: audience, url: url, kinds: kinds)
    }

    private static func kinds(_ list: String?) throws(UsageError) -> [EventKind] {
        guard let list else { return EventKind.standard }
        if list == "all" { return EventKind.allCases }
        let words = list.split(separator: ",", omittingEmptySubsequences: false)
        let kinds = words.compactMap { EventKind(rawValue: String($0)) }
        guard kinds.count == words.count, Set(kinds).count == kinds.count else {
            throw UsageError(
                message: "--events must be all, or some of: "
                    + EventKind.allCases.map(\.rawValue).joined(separator: ", "))
        }
        return kinds
    }

    func run(_ console: Console) async throws {
        try console.requireKnown(terms.audience)
        let masterKey = try key.file(console).read()
        let signature = try await actor.signature(console)
        try await DatabaseCommand.asOwner(console) { [terms] database in
            try await DestinationAdministration(database: database).create(
                terms, sealingWith: masterKey, by: signature
            ) { secret in
                print(secret, console)
                if console.hasLostOutput { throw CommandFailure.lostOutput }
            }
        }
    }

    private func print(_ secret: WebhookSecret?, _ console: Console) {
        guard asJSON else {
            return console.print(secret?.text ?? "destination \(terms.name) is created; a service fetches its events")
        }
        console.printJSON { writer in
            writer.member("destination", terms.name.description)
            writer.member("audience", terms.audience.description)
            writer.member("secret", secret?.text)
        }
    }
}

struct ListDestinations: Command {
    static let words = ["destination", "list"]
    static let summary = "list the destinations of events"
    static let example = "saltern destination list"
    static let help = """
          --json           one object, for scripts

        \(DatabaseCommand.ownerHelp)
        """

    private let asJSON: Bool

    init(_ arguments: inout Arguments) throws(UsageError) { asJSON = arguments.flag("--json") }

    func run(_ console: Console) async throws {
        let destinations = try await DatabaseCommand.asOwner(console) {
            try await DestinationAdministration(database: $0).destinations()
        }
        if asJSON {
            console.printJSON { writer in
                writer.array("destinations") { writer in
                    for destination in destinations {
                        writer.object { writer in
                            writer.member("destination", destination.name.description)
                            writer.member("audience", destination.audience.description)
                            writer.member("url", destination.url)
                            writer.array("events") { writer in
                                for kind in destination.kinds { writer.string(kind.rawValue) }
                            }
                            writer.member("createdAt", destination.createdAt.utc)
                            writer.member("disabledAt", destination.disabledAt)
                            writer.member("previousSecretUntil", destination.previousUntil)
                        }
                    }
                }
            }
            return
        }
        var table = Table([.text("destination"), .text("audience"), .text("state"), .text("url"), .text("events")])
        for destination in destinations {
            table.append([
                destination.name.description, destination.audience.description,
                destination.disabledAt == nil ? "enabled" : "disabled", destination.url ?? "pull",
                destination.kinds.map(\.rawValue).joined(separator: ","),
            ])
        }
        console.write(table.takeText())
    }
}

struct RotateDestination: Command {
    static let words = ["destination", "rotate"]
    static let summary = "replace the secret of a destination and print it"
    static let usage = ["NAME [OPTIONS]"]
    static let example = "saltern destination rotate crm"
    static let help = """
        \(MasterKeyFileOption.help)
        \(AdminActor.help)

        For a day both secrets sign each event. A disabled destination is enabled.

        \(DatabaseCommand.ownerHelp)
        """

    private let name: DestinationName
    private let key: MasterKeyFileOption
    private let actor: AdminActor

    init(_ arguments: inout Arguments) throws(UsageError) {
        actor = try AdminActor(&arguments)
        key = try MasterKeyFileOption(&arguments)
        name = try arguments.operatorName("destination")
    }

    func run(_ console: Console) async throws {
        let masterKey = try key.file(console).read()
        let signature = try await actor.signature(console)
        try await DatabaseCommand.asOwner(console) { [name] database in
            try await DestinationAdministration(database: database).rotate(
                name, sealingWith: masterKey, by: signature
            ) { secret in
                console.print(secret.text)
                if console.hasLostOutput { throw CommandFailure.lostOutput }
            }
        }
    }
}

struct RemoveDestinationCommand: Command {
    static let words = ["destination", "remove"]
    static let summary = "remove a destination with its events"
    static let usage = ["NAME [OPTIONS]"]
    static let example = "saltern destination remove crm"
    static let help = """
          --yes            does not ask, for scripts
        \(AdminActor.help)

        \(DatabaseCommand.ownerHelp)
        """

    private let name: DestinationName
    private let isConfirmed: Bool
    private let actor: AdminActor

    init(_ arguments: inout Arguments) throws(UsageError) {
        isConfirmed = arguments.flag("--yes")
        actor = try AdminActor(&arguments)
        name = try arguments.operatorName("destination")
    }

    func run(_ console: Console) async throws {
        if !isConfirmed {
            let count = try await DatabaseCommand.asOwner(console) { [name] database in
                let destination = try await DestinationAdministration(database: database).destination(name)
                return try await EventAdministration(database: database).count(
                    EventAdministration.Selection(destination: destination.id))
            }
            try console.confirm("Remove destination \(name) with \(counted(count, "undelivered event"))?")
        }
        let signature = try await actor.signature(console)
        try await DatabaseCommand.asOwner(console) { [name] in
            try await DestinationAdministration(database: $0).remove(name, by: signature)
        }
        console.print("destination \(name) is removed")
    }
}

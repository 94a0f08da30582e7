import CommandLineKit
import HTTPCore
import Postgres
import SalternServer

/// The options that select undelivered events.
struct EventSelection: Sendable {
    static let help = """
          --destination NAME
                           only events for this destination
          --parked         only events that are no longer attempted
        """

    private let id: EventID?
    private let destination: DestinationName?
    private let isParked: Bool

    /// - Parameter takesID: True if the command takes the identifier of one event, or `--destination`.
    init(_ arguments: inout Arguments, takesID: Bool) throws(UsageError) {
        isParked = arguments.flag("--parked")
        let name = try arguments.option("--destination")
        destination = name.flatMap { DestinationName($0) }
        if name != nil, destination == nil {
            throw UsageError(message: "--destination must be a name that saltern destination list shows")
        }
        guard takesID, name == nil else {
            id = nil
            return
        }
        guard let id = EventID(try arguments.word("the event's ID, or --destination")) else {
            throw UsageError(message: "an event's ID is msg_ and 32 characters, as saltern event list shows it")
        }
        self.id = id
    }

    /// Returns the selection in a database.
    func selection(_ database: PostgresClient) async throws -> EventAdministration.Selection {
        var selection = EventAdministration.Selection(id: id, isParked: isParked)
        if let destination {
            selection.destination = try await DestinationAdministration(database: database).destination(destination).id
        }
        return selection
    }
}

struct ListEvents: Command {
    static let words = ["event", "list"]
    static let summary = "list outgoing events that are not delivered"
    static let example = "saltern event list --parked"
    static let help = """
        \(EventSelection.help)
          --limit N        number of events, 1 to 10000 (100), oldest first
          --json           one object, for scripts

        \(DatabaseCommand.ownerHelp)
        """

    private let selection: EventSelection
    private let limit: Int
    private let asJSON: Bool

    init(_ arguments: inout Arguments) throws(UsageError) {
        asJSON = arguments.flag("--json")
        limit = try arguments.integer("--limit", in: 1...10_000) ?? 100
        selection = try EventSelection(&arguments, takesID: false)
    }

    func run(_ console: Console) async throws {
        let events = try await DatabaseCommand.asOwner(console) { [selection, limit] in
            try await EventAdministration(database: $0).events(selection.selection($0), limit: limit)
        }
        if asJSON {
            console.printJSON { writer in
                writer.array("events") { writer in
                    for event in events {
                        writer.object { writer in
                            writer.member("id", event.id.description)
                            writer.member("destination", event.destination)
                            writer.member("type", event.kind)
                            writer.member("accountId", event.accountID.description)
                            writer.member("occurredAt", event.occurredAt.utc)
                            writer.member("attempts", event.attempts)
                            writer.member("dueAt", event.dueAt)
                            writer.member("parkedAt", event.parkedAt)
                        }
                    }
                }
            }
            return
        }
        var table = Table([
            .text("id"), .text("destination"), .text("type"), .text("account"), .text("occurred"), .number("attempts"),
            .text("state"),
        ])
        for event in events {
            let state = event.parkedAt.map { "parked \($0.shown)" } ?? event.dueAt.map { "due \($0.shown)" } ?? "waits"
            table.append([
                event.id.description, event.destination, event.kind, event.accountID.description,
                event.occurredAt.shown, String(event.attempts), state,
            ])
        }
        console.write(table.takeText())
    }
}

struct RetryEvents: Command {
    static let words = ["event", "retry"]
    static let summary = "attempt outgoing events at once, parked ones too"
    static let usage = ["ID [OPTIONS]", "--destination NAME [OPTIONS]"]
    static let example = "saltern event retry --destination crm --parked"
    static let help = """
        \(EventSelection.help)
        \(AdminActor.help)

        A parked event may arrive after later ones of its account.

        \(DatabaseCommand.ownerHelp)
        """

    private let selection: EventSelection
    private let actor: AdminActor

    init(_ arguments: inout Arguments) throws(UsageError) {
        actor = try AdminActor(&arguments)
        selection = try EventSelection(&arguments, takesID: true)
    }

    func run(_ console: Console) async throws {
        let signature = try await actor.signature(console)
        let count = try await DatabaseCommand.asOwner(console) { [selection] in
            try await EventAdministration(database: $0).retry(selection.selection($0), by: signature)
        }
        console.print("\(counted(count, "event is", "events are")) due")
    }
}

struct DropEvents: Command {
    static let words = ["event", "drop"]
    static let summary = "remove outgoing events without delivery"
    static let usage = ["ID [OPTIONS]", "--destination NAME [OPTIONS]"]
    static let example = "saltern event drop --destination crm --parked"
    static let help = """
        \(EventSelection.help)
          --yes            does not ask, for scripts
        \(AdminActor.help)

        Receivers notice a gap in the numbers of an account's events.

        \(DatabaseCommand.ownerHelp)
        """

    private let selection: EventSelection
    private let isConfirmed: Bool
    private let actor: AdminActor

    init(_ arguments: inout Arguments) throws(UsageError) {
        isConfirmed = arguments.flag("--yes")
        actor = try AdminActor(&arguments)
        selection = try EventSelection(&arguments, takesID: true)
    }

    func run(_ console: Console) async throws {
        if !isConfirmed {
            let found = try await DatabaseCommand.asOwner(console) { [selection] in
                try await EventAdministration(database: $0).count(selection.selection($0))
            }
            if found > 0 { try console.confirm("Remove \(counted(found, "event")) without delivery?") }
        }
        let signature = try await actor.signature(console)
        let count = try await DatabaseCommand.asOwner(console) { [selection] in
            try await EventAdministration(database: $0).drop(selection.selection($0), by: signature)
        }
        console.print("\(counted(count, "event is", "events are")) removed")
    }
}
